//! `hostler user`.

use anyhow::{Result, bail};
use hostler_live::api::NewUser;
use hostler_live::client::{Ask, Method, escaped};
use hostler_live::host::TokenView;
use hostler_live::store::Role;
use serde_json::json;

use super::token::role;
use crate::cli::{Standing, UserAdd, UserCommand};
use crate::live::{client, moment, print_json, table};
use crate::say::print;

/// Adds, lists or removes users of the daemon's machine.
pub fn run(command: &UserCommand) -> Result<()> {
    match command {
        UserCommand::Add(args) => add(args),
        UserCommand::List { json } => {
            let mut users: Vec<TokenView> = client()?.get("/users")?;
            users.retain(|user| user.revoked.is_none());
            if *json { print_json(&users) } else { show(&users) }
        }
        UserCommand::Remove { name, json } => {
            let path = format!("/users/{}", escaped(name));
            let ask = Ask { method: Method::DELETE, path: &path, headers: &[], body: None };
            client()?.call::<()>(&ask)?;
            match json {
                true => print_json(&json!({ "removed": name })),
                false => Ok(print(format_args!("{name} is let in no more"))?),
            }
        }
    }
}

fn add(args: &UserAdd) -> Result<()> {
    let UserAdd { name, standing: Standing { role: named, tenant, new_tenant }, .. } = args;
    let role = role(*named);
    if role == Role::Agent {
        bail!("agents have tokens; see `hostler token create --role agent`");
    }
    let (name, tenant) = (name.clone(), tenant.clone());
    let new = NewUser { name, role, tenant: Some(tenant.clone()), new_tenant: *new_tenant };
    let number: u32 = client()?.post("/users", &new)?;
    match args.json {
        true => print_json(&json!({ "id": number, "name": new.name })),
        false => Ok(print(format_args!(
            "{} comes in by the daemon's socket, as {role} of tenant {tenant}",
            new.name
        ))?),
    }
}

fn show(users: &[TokenView]) -> Result<()> {
    let row = |user: &TokenView| {
        [user.name.clone(), user.role.to_string(), user.tenant.clone(), moment(user.created)]
    };
    let rows: Vec<_> = users.iter().map(row).collect();
    Ok(print(table(["USER", "ROLE", "TENANT", "SINCE"], &rows))?)
}
