//! The REST interface, over sockets, against a real daemon with a real store.

mod access;
mod daemon;
mod document;
mod jobs;
mod measures;
mod notices;
mod streams;
mod views;
