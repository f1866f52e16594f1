//! Policies that put jobs in an order and start them as they fit.

mod agenda;
mod beside;
mod calendar;
mod candidates;
mod choices;
mod gap_queues;
mod head_room;
mod holders;
mod likely_ends;
mod line;
mod outlook;
mod queues;
mod rank;
mod shadow;
mod steps;

policies![
    fifo,
    fifo_backfill,
    conservative_backfill,
    sjf,
    srtf,
    las,
    tiresias,
    gittins,
    bounded_sjf,
    priority,
    load_balance,
    progressive_filling
];
