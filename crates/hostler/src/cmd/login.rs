//! `hostler login`.

use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hostler_live::client::{Access, Client, ClientError, Server, credentials_file};

use crate::cli::Login;
use crate::live::variable;
use crate::say::say;

/// Bytes of a token on standard input.
const TOKEN_BYTES_MAX: u64 = 4096;

/// How long a server is waited for that may be there.
const LISTENS: Duration = Duration::from_secs(5);

/// Whether somebody takes connections there, whatever is spoken on them.
fn listens(server: &Server) -> bool {
    let Ok(addresses) = (server.host.as_str(), server.port).to_socket_addrs() else { return false };
    let mut addresses = addresses.take(4);
    addresses.any(|address| TcpStream::connect_timeout(&address, LISTENS).is_ok())
}

/// Tries the token and keeps it.
pub fn run(args: &Login) -> Result<()> {
    let token = match &args.token {
        Some(token) => token.clone(),
        None => {
            let mut text = String::new();
            let input = std::io::stdin().take(TOKEN_BYTES_MAX).read_to_string(&mut text);
            input.context("cannot read the token from standard input")?;
            text.trim().to_owned()
        }
    };
    let access = Access::new(&args.server, &token, args.fingerprint.as_deref())?;
    let mut client = Client::new(access.clone())?;
    match client.get::<serde_json::Value>("/policy") {
        Ok(_) => {}
        // An agent's token is good, only not for looking.
        Err(ClientError::Refused { status: 403, .. }) => {}
        Err(ClientError::Unreachable { .. }) if !access.server.tls && listens(&access.server) => {
            let Server { host, port, .. } = &access.server;
            bail!(
                "`{}` is there and does not speak plain HTTP; log in to https://{host}:{port} with \
                 the `--fingerprint` that `hostler serve` printed",
                access.server
            );
        }
        Err(error) => return Err(error.into()),
    }
    let file = credentials_file(variable).context("no home folder; set HOME")?;
    access.keep(&file)?;
    say(format_args!("logged in to {}; kept in `{}`", access.server, file.display()));
    Ok(())
}
