//! The store on a PostgreSQL server, for those who run one anyway.
//!
//! A session lock in the database keeps a second daemon out. A lost connection is an error like a
//! full disk: the daemon stops, since another may be the writer by the time it is back.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use postgres::error::SqlState;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, NoTls, Statement};

use super::sql::{Database, SqlStore, Value};
use super::{Store, StoreError};

/// Number of the session lock: the letters `hostler`.
const LOCK: i64 = 0x68_6f73_746c_6572;

/// How long a start waits for the lock: the server needs a moment to notice that a daemon which
/// was killed is gone.
const LOCK_PATIENCE: Duration = Duration::from_secs(3);

/// Time between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// How long a connection may take, where the address does not say.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);

/// How long the server may leave words unacknowledged, where the address does not say: one that
/// lost its network would otherwise be waited for by the quarter of an hour.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// The session lock as the server lists it: by database and the two halves of its number.
const LOCK_HELD: &str = "\
     SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() \
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND classid::bigint = $1 AND objid::bigint = $2 AND granted AND NOT pg_is_in_recovery()";

/// Opens the store at an address like `postgres://user:password@host/database`.
pub fn open(address: &str) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(SqlStore::new(connect(address)?, &super::cluster_name())?))
}

/// The database at an address, locked.
pub(super) fn connect(address: &str) -> Result<Postgres, StoreError> {
    let mut database = Postgres::connect(address)?;
    let end = Instant::now() + LOCK_PATIENCE;
    while !database.lock()? {
        if Instant::now() >= end {
            return Err(StoreError::InUse { store: database.name });
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    database.execute("SET synchronous_commit = on", &[])?;
    Ok(database)
}

/// A connection to a PostgreSQL database.
pub(super) struct Postgres {
    client: Client,
    name: String,
    address: String,
    statements: BTreeMap<String, Statement>,
}

impl Postgres {
    fn connect(address: &str) -> Result<Postgres, StoreError> {
        let mut config: Config = address.parse().map_err(|error| fault("postgres", &error))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_PATIENCE);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE_MAX);
        }
        let name = name_of(&config);
        let client = config.connect(NoTls).map_err(|error| fault(&name, &error))?;
        Ok(Postgres { client, name, address: address.to_owned(), statements: BTreeMap::new() })
    }

    /// Whether the session lock could be had.
    fn lock(&mut self) -> Result<bool, StoreError> {
        let sql = "SELECT pg_try_advisory_lock($1)::int::bigint";
        Ok(self.query(sql, &[Value::Int(LOCK)])? == [[Value::Int(1)]])
    }

    fn statement(&mut self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).map_err(|error| fault(&self.name, &error))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Host and database; the password stays out.
fn name_of(config: &Config) -> String {
    let host = config.get_hosts().first().map_or("?".to_owned(), |host| match host {
        postgres::config::Host::Tcp(host) => host.clone(),
        postgres::config::Host::Unix(path) => path.display().to_string(),
    });
    format!("postgres://{host}/{}", config.get_dbname().unwrap_or_default())
}

fn fault(store: &str, error: &postgres::Error) -> StoreError {
    let mut fault = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        fault = format!("{fault}: {inner}");
        source = inner.source();
    }
    let store = store.to_owned();
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => StoreError::Full { store, fault },
        Some(code) if *code == SqlState::DATA_CORRUPTED || *code == SqlState::INDEX_CORRUPTED => {
            StoreError::Damaged { store, fault }
        }
        Some(code) if code.code().starts_with("08") || code.code().starts_with("57P") => {
            StoreError::Lost { store, fault }
        }
        Some(_) => StoreError::Failed { store, fault },
        // Without a word from the server it is the connection.
        None => StoreError::Lost { store, fault },
    }
}

impl Database for Postgres {
    fn name(&self) -> &str {
        &self.name
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        if values.is_empty() {
            let done = self.client.batch_execute(sql);
            return done.map(|()| 0).map_err(|error| fault(&self.name, &error));
        }
        let statement = self.statement(sql)?;
        let done = self.client.execute(&statement, &parameters(values));
        done.map_err(|error| fault(&self.name, &error))
    }

    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StoreError> {
        let statement = self.statement(sql)?;
        let rows = self.client.query(&statement, &parameters(values));
        let rows = rows.map_err(|error| fault(&self.name, &error))?;
        rows.iter()
            .map(|row| (0..row.len()).map(|column| self.value(row, column)).collect())
            .collect()
    }

    fn has_table(&mut self, name: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1::bigint FROM information_schema.tables \
                   WHERE table_schema = current_schema() AND table_name = $1";
        Ok(!self.query(sql, &[name.into()])?.is_empty())
    }

    fn check_lock(&mut self) -> Result<(), StoreError> {
        let halves = [Value::Int(LOCK >> 32), Value::Int(LOCK & 0xffff_ffff)];
        if self.query(LOCK_HELD, &halves)? == [[Value::Int(1)]] {
            return Ok(());
        }
        let fault = "the lock that keeps other daemons out is gone".to_owned();
        Err(StoreError::Lost { store: self.name.clone(), fault })
    }

    /// The server sees to its files.
    fn merge(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn second(&self) -> Result<Postgres, StoreError> {
        let mut second = Postgres::connect(&self.address)?;
        second.execute("SET default_transaction_read_only = on", &[])?;
        Ok(second)
    }
}

impl Postgres {
    fn value(&self, row: &postgres::Row, column: usize) -> Result<Value, StoreError> {
        let read = if *row.columns()[column].type_() == Type::INT8 {
            row.try_get(column).map(|number: Option<i64>| number.map(Value::Int))
        } else {
            row.try_get(column).map(|text: Option<String>| text.map(Value::Text))
        };
        read.map(|value| value.unwrap_or(Value::Null)).map_err(|error| fault(&self.name, &error))
    }
}

fn parameters(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Int(number) => number.to_sql(kind, out),
            Value::Text(text) => text.to_sql(kind, out),
            Value::Null => Ok(IsNull::Yes),
        }
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::INT8 || *kind == Type::TEXT || *kind == Type::VARCHAR || *kind == Type::NAME
    }

    to_sql_checked!();
}
