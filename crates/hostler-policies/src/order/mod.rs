//! Policies that put jobs in an order and start them as they fit.

mod backfill;
mod beside;
mod future;
mod gap_queues;
mod head_room;
mod hopeless;
mod line;
mod outlook;
mod rank;
mod shadow;

policies![
    fifo,
    fifo_backfill,
    conservative_backfill,
    sjf,
    srtf,
    priority,
    load_balance,
    progressive_filling
];
