//! The store over any SQL database: what is written and read, but not how to reach it.

use data_encoding::HEXLOWER;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::rows::{Batch, JobOrigin, JobRow, KeyRow, Loaded, NodeRow, Row, TenantRow, TokenRow};
use super::schema::{self, SCHEMA_VERSION};
use super::{HistoryFilter, Reader, Store, StoreError};
use crate::limits::PAGE_JOBS_MAX;
use crate::reservation::Reservation;

/// Bytes of one part of a snapshot.
const SNAPSHOT_PART_BYTES: usize = 1 << 20;

/// What `meta` calls a store that came from a backup and has not been served since.
pub(super) const RESTORED: &str = "restored";

/// What `meta` calls reservations: there are few, and they are read together.
const RESERVATIONS: &str = "reservations";

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Text(String),
    Null,
}

/// A connection to a database.
pub(super) trait Database: Send + Sized {
    /// Its name, without secrets.
    fn name(&self) -> &str;

    /// Runs a statement.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError>;

    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StoreError>;

    /// Whether there is a table of this name.
    fn has_table(&mut self, name: &str) -> Result<bool, StoreError>;

    /// Whether the lock that keeps other writers out is still held.
    fn check_lock(&mut self) -> Result<(), StoreError>;

    /// Leaves everything in the one place that a copy is taken of.
    fn merge(&mut self) -> Result<(), StoreError>;

    /// A second connection that only reads.
    fn second(&self) -> Result<Self, StoreError>;
}

/// A store in a database.
pub(super) struct SqlStore<Base> {
    database: Base,
}

impl<Base: Database> SqlStore<Base> {
    /// The store in a database that is reached and locked; an empty one becomes a store.
    pub(super) fn new(mut database: Base, cluster: &str) -> Result<SqlStore<Base>, StoreError> {
        if !database.has_table("meta")? {
            if database.has_table("jobs")? || database.has_table("log")? {
                return Err(StoreError::Foreign { store: database.name().to_owned() });
            }
            in_transaction(&mut database, |database| create(database, cluster))?;
        }
        migrate(&mut database)?;
        Ok(SqlStore { database })
    }

    /// The name of its cluster, and the number of the last record.
    pub(super) fn position(&mut self) -> Result<(String, u64), StoreError> {
        let cluster = meta(&mut self.database, "cluster")?.unwrap_or_default();
        Ok((cluster, last_record(&mut self.database)?))
    }
}

fn create(database: &mut impl Database, cluster: &str) -> Result<(), StoreError> {
    for statement in schema::CREATE {
        database.execute(statement, &[])?;
    }
    let version = SCHEMA_VERSION.to_string();
    database.execute(schema::META_PUT, &["schema".into(), version.as_str().into()])?;
    database.execute(schema::META_PUT, &["cluster".into(), cluster.into()])?;
    Ok(())
}

pub(super) fn migrate(database: &mut impl Database) -> Result<(), StoreError> {
    let store = database.name().to_owned();
    let version = meta(database, "schema")?;
    let version = version.and_then(|text| text.parse::<i64>().ok()).filter(|version| *version > 0);
    let Some(found) = version else {
        return Err(StoreError::Foreign { store });
    };
    if found > SCHEMA_VERSION {
        return Err(StoreError::Newer { store, found, known: SCHEMA_VERSION });
    }
    for (step, statements) in schema::MIGRATE.iter().enumerate().skip(found as usize - 1) {
        in_transaction(database, |database| {
            for statement in *statements {
                database.execute(statement, &[])?;
            }
            let version = (step + 2).to_string();
            database.execute(schema::META_PUT, &["schema".into(), version.as_str().into()])
        })?;
    }
    Ok(())
}

/// Runs `work` in one transaction; after a failure nothing of it is there.
pub(super) fn in_transaction<Base: Database, Out>(
    database: &mut Base,
    work: impl FnOnce(&mut Base) -> Result<Out, StoreError>,
) -> Result<Out, StoreError> {
    database.execute("BEGIN", &[])?;
    let done = work(database).and_then(|out| database.execute("COMMIT", &[]).map(|_| out));
    if done.is_err() {
        // The first fault tells more than one of the way back.
        let _ = database.execute("ROLLBACK", &[]);
    }
    done
}

fn meta(database: &mut impl Database, name: &str) -> Result<Option<String>, StoreError> {
    let rows = database.query(schema::META_READ, &[name.into()])?;
    Ok(rows.into_iter().next().and_then(|row| match row.into_iter().next() {
        Some(Value::Text(text)) => Some(text),
        Some(Value::Int(_) | Value::Null) | None => None,
    }))
}

impl<Base: Database + 'static> Store for SqlStore<Base> {
    fn load(&mut self) -> Result<Loaded, StoreError> {
        let database = &mut self.database;
        let cluster = meta(database, "cluster")?.unwrap_or_default();
        let policy = meta(database, "policy")?;
        let fence = match meta(database, "fence")? {
            Some(text) => match text.parse() {
                Ok(fence) => Some(fence),
                Err(_) => return Err(damaged(database, "the fence is no number")),
            },
            None => None,
        };
        let jobs = format!("{} WHERE ended IS NULL ORDER BY id", schema::JOB_COLUMNS);
        let last_record = last_record(database)?;
        let snapshot = read(database, schema::SNAPSHOT_READ, &[], checked)?;
        let snapshot = snapshot.into_iter().reduce(|(number, mut state), (_, part)| {
            state.push_str(&part);
            (number, state)
        });
        Ok(Loaded {
            cluster,
            snapshot,
            last_record,
            jobs: read(database, &jobs, &[], job_row)?,
            tokens: read(database, schema::TOKENS_READ, &[], token_row)?,
            tenants: read(database, schema::TENANTS_READ, &[], |row| {
                Ok(TenantRow { id: row.number()?, name: row.text()?, quota: row.json()? })
            })?,
            nodes: read(database, schema::NODES_READ, &[], node_row)?,
            reservations: reservations(database)?,
            groups: read(database, schema::GROUPS_READ, &[], |row| {
                Ok((row.text()?, row.number()?))
            })?,
            keys: read(database, schema::KEYS_READ, &[], key_row)?,
            policy,
            fence,
            restored: meta(database, RESTORED)?.is_some(),
        })
    }

    fn records(&mut self, after: u64, most: usize) -> Result<Vec<(u64, String)>, StoreError> {
        records(&mut self.database, after, most)
    }

    fn job(&mut self, id: u32) -> Result<Option<JobRow>, StoreError> {
        job(&mut self.database, id)
    }

    fn job_found(&mut self, by: &str) -> Result<Option<JobRow>, StoreError> {
        let sql = format!("{} WHERE found = $1", schema::JOB_COLUMNS);
        Ok(read(&mut self.database, &sql, &[by.into()], job_row)?.pop())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        in_transaction(&mut self.database, |database| {
            for (number, record) in &batch.records {
                let values = [(*number).into(), record.as_str().into(), digest(record).into()];
                database.execute(schema::LOG_ADD, &values)?;
            }
            if let Some((number, state)) = &batch.snapshot {
                database.execute(schema::SNAPSHOT_DROP, &[(*number).into()])?;
                for (part, text) in parts(state).enumerate() {
                    let part = Value::from(part as u64);
                    let values = [(*number).into(), part, text.into(), digest(text).into()];
                    database.execute(schema::SNAPSHOT_ADD, &values)?;
                }
            }
            batch.rows.iter().try_for_each(|row| write(database, row))
        })
    }

    fn check(&mut self) -> Result<(), StoreError> {
        self.database.check_lock()
    }

    fn close(&mut self) -> Result<(), StoreError> {
        self.database.merge()
    }

    fn reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        Ok(Box::new(SqlReader { database: self.database.second()? }))
    }
}

fn last_record(database: &mut impl Database) -> Result<u64, StoreError> {
    match read(database, schema::LOG_LAST, &[], |row| row.number())?[..] {
        [last] => Ok(last),
        _ => Err(damaged(database, "the log has no length")),
    }
}

/// A long text in parts: databases copy what they are given, and a whole state is large.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let mut end = text.len().min(SNAPSHOT_PART_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        if end < text.len() {
            rest = Some(&text[end..]);
        }
        Some(&text[..end])
    })
}

fn write(database: &mut impl Database, row: &Row) -> Result<(), StoreError> {
    match row {
        Row::JobAdded(job) => database.execute(schema::JOB_ADD, &job_values(job)),
        Row::JobChanged(job) => {
            let [_, version, _, _, state, _, ended, _, _, facts, _] = job_values(job);
            let values = [version, state, ended, facts, job.id.into()];
            database.execute(schema::JOB_CHANGE, &values)
        }
        Row::Token(token) => database.execute(schema::TOKEN_PUT, &token_values(token)),
        Row::Tenant(TenantRow { id, name, quota }) => {
            database.execute(schema::TENANT_PUT, &[(*id).into(), name.as_str().into(), json(quota)])
        }
        Row::Node(node) => {
            let NodeRow { name, id, token, draining, machine } = &**node;
            let draining = u32::from(*draining);
            let values = [
                name.as_str().into(),
                (*id).into(),
                token.map_or(Value::Null, Value::from),
                draining.into(),
                json(machine),
            ];
            database.execute(schema::NODE_PUT, &values)
        }
        Row::Group(name, id) => {
            database.execute(schema::GROUP_PUT, &[name.as_str().into(), (*id).into()])
        }
        Row::Key(key) => database.execute(schema::KEY_ADD, &key_values(key)),
        Row::KeyGone { token, key } => {
            database.execute(schema::KEY_DROP, &[(*token).into(), key.as_str().into()])
        }
        Row::KeysGone(before) => database.execute(schema::KEYS_DROP, &[(*before).into()]),
        Row::Policy(settings) => {
            database.execute(schema::META_PUT, &["policy".into(), settings.as_str().into()])
        }
        Row::Reservations(kept) => {
            database.execute(schema::META_PUT, &[RESERVATIONS.into(), json(kept)])
        }
        Row::GapLeft => database.execute(schema::META_DROP, &[RESTORED.into()]),
        Row::Fence(fence) => {
            let fence = fence.to_string();
            database.execute(schema::META_PUT, &["fence".into(), fence.as_str().into()])
        }
    }
    .map(|_| ())
}

fn reservations(database: &mut impl Database) -> Result<Vec<Reservation>, StoreError> {
    let Some(text) = meta(database, RESERVATIONS)? else { return Ok(Vec::new()) };
    serde_json::from_str(&text).map_err(|fault| StoreError::Damaged {
        store: database.name().to_owned(),
        fault: format!("reservations: {fault}"),
    })
}

struct SqlReader<Base> {
    database: Base,
}

impl<Base: Database> SqlReader<Base> {
    /// Reads, over a new connection when the old one is gone: unlike the writer, a reader holds no
    /// lock that it could have lost.
    fn read<Out>(
        &mut self,
        look: impl Fn(&mut Base) -> Result<Out, StoreError>,
    ) -> Result<Out, StoreError> {
        match look(&mut self.database) {
            Err(StoreError::Lost { .. }) => {
                self.database = self.database.second()?;
                look(&mut self.database)
            }
            done => done,
        }
    }
}

impl<Base: Database> Reader for SqlReader<Base> {
    fn job(&mut self, id: u32) -> Result<Option<JobRow>, StoreError> {
        self.read(|database| job(database, id))
    }

    fn history(&mut self, filter: &HistoryFilter) -> Result<Vec<JobRow>, StoreError> {
        let mut sql = format!("{} WHERE ended IS NOT NULL", schema::JOB_COLUMNS);
        let mut values: Vec<Value> = Vec::new();
        let mut also = |condition: &str, value: Option<Value>| {
            if let Some(value) = value {
                values.push(value);
                sql += &format!(" AND {condition} ${}", values.len());
            }
        };
        also("tenant =", filter.tenant.as_deref().map(Value::from));
        also("owner =", filter.user.as_deref().map(Value::from));
        also("state =", filter.state.as_ref().map(word));
        also("array_of =", filter.array_of.map(Value::from));
        also("ended >=", filter.ended_from.map(Value::from));
        also("ended <", filter.ended_before.map(Value::from));
        also("id >=", filter.from.map(Value::from));
        also("id <", filter.before.map(Value::from));
        if let Some(Some((ended, id))) = filter.by_end {
            values.extend([ended.into(), id.into()]);
            let (ended, id) = (values.len() - 1, values.len());
            sql += &format!(" AND (ended < ${ended} OR (ended = ${ended} AND id < ${id}))");
        }
        let limit = filter.limit.clamp(1, PAGE_JOBS_MAX as usize) as u64;
        values.push(limit.into());
        let order = if filter.by_end.is_some() { "ended DESC, id DESC" } else { "id DESC" };
        sql += &format!(" ORDER BY {order} LIMIT ${}", values.len());
        self.read(|database| read(database, &sql, &values, job_row))
    }

    fn records(&mut self, after: u64, most: usize) -> Result<Vec<(u64, String)>, StoreError> {
        self.read(|database| records(database, after, most))
    }
}

fn job(database: &mut impl Database, id: u32) -> Result<Option<JobRow>, StoreError> {
    let sql = format!("{} WHERE id = $1", schema::JOB_COLUMNS);
    Ok(read(database, &sql, &[id.into()], job_row)?.pop())
}

fn records(
    database: &mut impl Database,
    after: u64,
    most: usize,
) -> Result<Vec<(u64, String)>, StoreError> {
    let values = [after.into(), (most as u64).into()];
    read(database, schema::LOG_READ, &values, checked)
}

/// Reads rows; one that cannot be read means damage.
fn read<Base: Database, Out>(
    database: &mut Base,
    sql: &str,
    values: &[Value],
    row_of: impl Fn(&mut Columns) -> Result<Out, String>,
) -> Result<Vec<Out>, StoreError> {
    let rows = database.query(sql, values)?;
    let rows = rows.into_iter().map(|row| row_of(&mut Columns(row.into_iter())));
    rows.collect::<Result<_, String>>().map_err(|fault| damaged(database, &fault))
}

fn damaged(database: &impl Database, fault: &str) -> StoreError {
    StoreError::Damaged { store: database.name().to_owned(), fault: fault.to_owned() }
}

/// The columns of a row, from the left.
struct Columns(std::vec::IntoIter<Value>);

impl Columns {
    fn number<Number: TryFrom<i64>>(&mut self) -> Result<Number, String> {
        match self.0.next() {
            Some(Value::Int(number)) => {
                Number::try_from(number).map_err(|_| format!("{number} is out of range"))
            }
            other => Err(format!("expected a number, found {other:?}")),
        }
    }

    fn number_if_any<Number: TryFrom<i64>>(&mut self) -> Result<Option<Number>, String> {
        if self.0.as_slice().first() == Some(&Value::Null) {
            self.0.next();
            return Ok(None);
        }
        self.number().map(Some)
    }

    fn text(&mut self) -> Result<String, String> {
        match self.0.next() {
            Some(Value::Text(text)) => Ok(text),
            other => Err(format!("expected text, found {other:?}")),
        }
    }

    fn text_if_any(&mut self) -> Result<Option<String>, String> {
        if self.0.as_slice().first() == Some(&Value::Null) {
            self.0.next();
            return Ok(None);
        }
        self.text().map(Some)
    }

    fn json<Out: DeserializeOwned>(&mut self) -> Result<Out, String> {
        serde_json::from_str(&self.text()?).map_err(|fault| fault.to_string())
    }

    fn json_if_any<Out: DeserializeOwned>(&mut self) -> Result<Option<Out>, String> {
        let text = self.text_if_any()?;
        let read = text.map(|text| serde_json::from_str(&text)).transpose();
        read.map_err(|fault| fault.to_string())
    }

    fn word<Out: DeserializeOwned>(&mut self) -> Result<Out, String> {
        let text = serde_json::Value::String(self.text()?);
        serde_json::from_value(text).map_err(|fault| fault.to_string())
    }
}

/// Number and text of a record or snapshot whose digest is right.
fn checked(row: &mut Columns) -> Result<(u64, String), String> {
    let (number, text, expected) = (row.number()?, row.text()?, row.text()?);
    let sound = digest(&text) == expected;
    if sound { Ok((number, text)) } else { Err(format!("record {number} was changed on disk")) }
}

fn job_row(row: &mut Columns) -> Result<JobRow, String> {
    Ok(JobRow {
        id: row.number()?,
        version: row.number()?,
        tenant: row.text()?,
        user: row.text()?,
        state: row.word()?,
        submitted: row.number()?,
        ended: row.number_if_any()?,
        array_of: row.number_if_any()?,
        request: row.json()?,
        facts: row.json()?,
        origin: match row.text_if_any()? {
            Some(by) => JobOrigin::Found { by },
            None => JobOrigin::Ours,
        },
    })
}

fn job_values(job: &JobRow) -> [Value; 11] {
    [
        job.id.into(),
        job.version.into(),
        job.tenant.as_str().into(),
        job.user.as_str().into(),
        word(&job.state),
        job.submitted.into(),
        job.ended.map_or(Value::Null, Value::from),
        job.array_of.map_or(Value::Null, Value::from),
        json(&job.request),
        json(&job.facts),
        job.origin.found().map_or(Value::Null, Value::from),
    ]
}

fn token_row(row: &mut Columns) -> Result<TokenRow, String> {
    Ok(TokenRow {
        id: row.number()?,
        hash: row.text()?,
        role: row.word()?,
        tenant: row.text()?,
        name: row.text()?,
        created: row.number()?,
        revoked: row.number_if_any()?,
        one_time: row.number::<u32>()? != 0,
        person: row.json_if_any()?,
    })
}

fn token_values(token: &TokenRow) -> [Value; 9] {
    [
        token.id.into(),
        token.hash.as_str().into(),
        word(&token.role),
        token.tenant.as_str().into(),
        token.name.as_str().into(),
        token.created.into(),
        token.revoked.map_or(Value::Null, Value::from),
        u32::from(token.one_time).into(),
        token.person.as_ref().map_or(Value::Null, json),
    ]
}

fn node_row(row: &mut Columns) -> Result<NodeRow, String> {
    Ok(NodeRow {
        name: row.text()?,
        id: row.number()?,
        token: row.number_if_any()?,
        draining: row.number::<u32>()? != 0,
        machine: row.json()?,
    })
}

fn key_row(row: &mut Columns) -> Result<KeyRow, String> {
    Ok(KeyRow {
        token: row.number()?,
        key: row.text()?,
        request: row.text()?,
        first_job: row.number()?,
        jobs: row.number()?,
        at: row.number()?,
    })
}

fn key_values(key: &KeyRow) -> [Value; 6] {
    [
        key.token.into(),
        key.key.as_str().into(),
        key.request.as_str().into(),
        key.first_job.into(),
        key.jobs.into(),
        key.at.into(),
    ]
}

/// First half of the SHA-256, which tells damage; it is no protection against forgery.
fn digest(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes())[..16])
}

fn json(value: &impl Serialize) -> Value {
    Value::Text(serde_json::to_string(value).expect("rows are plain data"))
}

fn word(value: &impl Serialize) -> Value {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => Value::Text(word),
        other => unreachable!("a word, not {other:?}"),
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Int(number.into())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}
