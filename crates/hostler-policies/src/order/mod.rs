//! Policies that put jobs in an order and start them as they fit.

mod agenda;
mod beside;
mod calendar;
mod choices;
mod gap_queues;
mod head_room;
mod holders;
mod line;
mod outlook;
mod queues;
mod rank;
mod shadow;

policies![
    fifo,
    fifo_backfill,
    conservative_backfill,
    sjf,
    srtf,
    las,
    tiresias,
    bounded_sjf,
    priority,
    load_balance,
    progressive_filling
];
