//! Policies that put jobs in an order and start them as they fit.

mod hopeless;
mod outlook;
mod rank;

policies![conservative_backfill, fifo, fifo_backfill, priority, sjf, srtf];
