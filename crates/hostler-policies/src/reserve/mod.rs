//! Policies that keep high-end GPUs for jobs that gain from them.

mod booked;
mod pass;
mod place;
mod queue;
mod class_access;
mod settings;

policies![pai, pai_cpu];
