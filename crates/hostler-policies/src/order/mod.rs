//! Policies that put jobs in an order and start them as they fit.

mod rank;

policies![fifo, priority, sjf, srtf];
