//! `hostler reservation`.

use anyhow::Result;
use hostler_live::client::{Ask, Method, escaped};
use hostler_live::reservation::{Reservation, ReservationRequest};

use crate::cli::{ReservationAdd, ReservationCommand};
use crate::live::{client, moment, print_json, table};
use crate::say::print;

/// Lists reservations, adds one or ends one.
pub fn run(command: &ReservationCommand) -> Result<()> {
    match command {
        ReservationCommand::List { json } => {
            let kept: Vec<Reservation> = client()?.get("/reservations")?;
            if *json { print_json(&kept) } else { show(&kept) }
        }
        ReservationCommand::Add(args) => add(args),
        ReservationCommand::End { name } => {
            let path = format!("/reservations/{}", escaped(name));
            let ask = Ask { method: Method::DELETE, path: &path, headers: &[], body: None };
            client()?.call::<()>(&ask)?;
            Ok(print(format_args!("reservation {name} is over"))?)
        }
    }
}

fn add(args: &ReservationAdd) -> Result<()> {
    let request = ReservationRequest {
        name: args.name.clone(),
        nodes: args.nodes.clone(),
        gpus: args.gpus,
        from: args.from,
        secs: args.lasts,
        tenants: args.tenant.clone(),
        users: args.user.clone(),
        stops_jobs: args.stop_jobs,
        reason: args.reason.clone(),
    };
    let kept: Reservation = client()?.post("/reservations", &request)?;
    if args.json { print_json(&kept) } else { show(&[kept]) }
}

fn show(kept: &[Reservation]) -> Result<()> {
    if kept.is_empty() {
        return Ok(print("no nodes are kept for anybody")?);
    }
    let when = |at: Option<f64>| at.map_or("-".to_owned(), moment);
    let row = |kept: &Reservation| {
        let guests: Vec<&str> =
            kept.users.iter().chain(&kept.tenants).map(String::as_str).collect();
        [
            kept.name.clone(),
            when(kept.from),
            when(kept.until),
            kept.nodes.join(","),
            if guests.is_empty() { "nobody".to_owned() } else { guests.join(",") },
            kept.reason.clone(),
        ]
    };
    let rows: Vec<_> = kept.iter().map(row).collect();
    Ok(print(table(["RESERVATION", "FROM", "UNTIL", "NODES", "FOR", "REASON"], &rows))?)
}
