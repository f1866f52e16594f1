//! Policies that keep high-end GPUs for jobs that gain from them.

mod booked;
mod class_access;
mod pass;
mod place;
mod queue;
mod settings;

policies![pai, pai_cpu];
