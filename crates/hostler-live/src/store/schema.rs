//! The tables of the store, in SQL that SQLite and PostgreSQL both read.
//!
//! A column is there when it is searched for; everything else of a row is JSON in `facts`.

/// Version of the tables below. A program refuses a store with a later one.
pub const SCHEMA_VERSION: i64 = 3;

/// What makes an empty database a store, statement by statement.
pub(super) const CREATE: &[&str] = &[
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE log (number BIGINT PRIMARY KEY, record TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE snapshot (number BIGINT NOT NULL, part BIGINT NOT NULL, state TEXT NOT NULL, \
     digest TEXT NOT NULL, PRIMARY KEY (number, part))",
    "CREATE TABLE jobs (id BIGINT PRIMARY KEY, version BIGINT NOT NULL, tenant TEXT NOT NULL, \
     owner TEXT NOT NULL, state TEXT NOT NULL, submitted BIGINT NOT NULL, ended BIGINT, \
     array_of BIGINT, request TEXT NOT NULL, facts TEXT NOT NULL, found TEXT)",
    "CREATE INDEX jobs_not_over ON jobs (id) WHERE ended IS NULL",
    "CREATE INDEX jobs_ended ON jobs (ended) WHERE ended IS NOT NULL",
    "CREATE INDEX jobs_tenant ON jobs (tenant, id)",
    JOBS_FOUND,
    "CREATE TABLE tokens (id BIGINT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, role TEXT NOT NULL, \
     tenant TEXT NOT NULL, name TEXT NOT NULL, created BIGINT NOT NULL, revoked BIGINT, \
     one_time BIGINT NOT NULL, person TEXT)",
    "CREATE TABLE tenants (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, quota TEXT NOT NULL)",
    NODES,
    "CREATE TABLE groups_known (name TEXT PRIMARY KEY, id BIGINT NOT NULL)",
    "CREATE TABLE idempotency (token BIGINT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, \
     first_job BIGINT NOT NULL, jobs BIGINT NOT NULL, used BIGINT NOT NULL, \
     PRIMARY KEY (token, key))",
];

/// What a driver calls a job is searched for each time that it finds one.
const JOBS_FOUND: &str = "CREATE UNIQUE INDEX jobs_found ON jobs (found) WHERE found IS NOT NULL";

const NODES: &str = "\
     CREATE TABLE nodes (name TEXT PRIMARY KEY, id BIGINT NOT NULL, token BIGINT, \
     draining BIGINT NOT NULL, machine TEXT NOT NULL)";

/// A table, for those who carry all of it elsewhere.
pub(super) struct SchemaTable {
    pub(super) name: &'static str,
    pub(super) columns: &'static str,
    pub(super) key: Key,
}

/// How a table can be read in parts.
pub(super) enum Key {
    /// By the number in its first column, which has this name.
    Number(&'static str),
    /// Not at all: it is small.
    Words,
}

/// Every table of [`CREATE`].
pub(super) const TABLES: &[SchemaTable] = &[
    SchemaTable { name: "meta", columns: "name, value", key: Key::Words },
    SchemaTable { name: "log", columns: "number, record, digest", key: Key::Number("number") },
    SchemaTable { name: "snapshot", columns: "number, part, state, digest", key: Key::Words },
    SchemaTable {
        name: "jobs",
        columns: "id, version, tenant, owner, state, submitted, ended, array_of, request, facts, \
                  found",
        key: Key::Number("id"),
    },
    SchemaTable {
        name: "tokens",
        columns: "id, hash, role, tenant, name, created, revoked, one_time, person",
        key: Key::Number("id"),
    },
    SchemaTable { name: "tenants", columns: "id, name, quota", key: Key::Number("id") },
    SchemaTable { name: "nodes", columns: "name, id, token, draining, machine", key: Key::Words },
    SchemaTable { name: "groups_known", columns: "name, id", key: Key::Words },
    SchemaTable {
        name: "idempotency",
        columns: "token, key, request, first_job, jobs, used",
        key: Key::Words,
    },
];

/// What brings a store of version `index + 1` to the next one.
pub(super) const MIGRATE: &[&[&str]] = &[
    &[
        "ALTER TABLE jobs ADD COLUMN found TEXT",
        JOBS_FOUND,
        // SQLite cannot let a column be empty that was made otherwise.
        "ALTER TABLE nodes RENAME TO nodes_before",
        NODES,
        "INSERT INTO nodes (name, id, token, draining, machine) \
     SELECT name, id, token, draining, machine FROM nodes_before",
        "DROP TABLE nodes_before",
        // What a job comes after is in the log.
        "DROP TABLE dependencies",
    ],
    &["ALTER TABLE tokens ADD COLUMN person TEXT"],
];

pub(super) const LOG_ADD: &str = "INSERT INTO log (number, record, digest) VALUES ($1, $2, $3)";
pub(super) const LOG_READ: &str =
    "SELECT number, record, digest FROM log WHERE number > $1 ORDER BY number LIMIT $2";
pub(super) const LOG_LAST: &str = "SELECT COALESCE(MAX(number), 0) FROM log";
pub(super) const SNAPSHOT_ADD: &str =
    "INSERT INTO snapshot (number, part, state, digest) VALUES ($1, $2, $3, $4)";
pub(super) const SNAPSHOT_DROP: &str = "DELETE FROM snapshot WHERE number <= $1";
pub(super) const SNAPSHOT_READ: &str = "SELECT number, state, digest FROM snapshot \
                                        WHERE number = (SELECT MAX(number) FROM snapshot) \
                                        ORDER BY part";
pub(super) const JOB_ADD: &str = "\
     INSERT INTO jobs (id, version, tenant, owner, state, submitted, ended, array_of, request, \
     facts, found) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
pub(super) const JOB_CHANGE: &str =
    "UPDATE jobs SET version = $1, state = $2, ended = $3, facts = $4 WHERE id = $5";
pub(super) const JOB_COLUMNS: &str = "SELECT id, version, tenant, owner, state, submitted, ended, \
                                      array_of, request, facts, found FROM jobs";
pub(super) const TOKEN_PUT: &str = "\
     INSERT INTO tokens (id, hash, role, tenant, name, created, revoked, one_time, person) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
     ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked, name = excluded.name";
pub(super) const TOKENS_READ: &str = "SELECT id, hash, role, tenant, name, created, revoked, \
                                      one_time, person FROM tokens ORDER BY id";
pub(super) const TENANT_PUT: &str = "INSERT INTO tenants (id, name, quota) VALUES ($1, $2, $3) \
                                     ON CONFLICT (id) DO UPDATE SET quota = excluded.quota";
pub(super) const TENANTS_READ: &str = "SELECT id, name, quota FROM tenants ORDER BY id";
pub(super) const NODE_PUT: &str = "\
     INSERT INTO nodes (name, id, token, draining, machine) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (name) DO UPDATE SET id = excluded.id, token = excluded.token, \
     draining = excluded.draining, machine = excluded.machine";
pub(super) const NODES_READ: &str =
    "SELECT name, id, token, draining, machine FROM nodes ORDER BY name";
pub(super) const GROUP_PUT: &str =
    "INSERT INTO groups_known (name, id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
pub(super) const GROUPS_READ: &str = "SELECT name, id FROM groups_known ORDER BY id";
pub(super) const KEY_ADD: &str = "\
     INSERT INTO idempotency (token, key, request, first_job, jobs, used) \
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
pub(super) const KEY_DROP: &str = "DELETE FROM idempotency WHERE token = $1 AND key = $2";
pub(super) const KEYS_DROP: &str = "DELETE FROM idempotency WHERE used < $1";
pub(super) const KEYS_READ: &str =
    "SELECT token, key, request, first_job, jobs, used FROM idempotency ORDER BY token, key";
pub(super) const META_PUT: &str = "INSERT INTO meta (name, value) VALUES ($1, $2) \
                                   ON CONFLICT (name) DO UPDATE SET value = excluded.value";
pub(super) const META_READ: &str = "SELECT value FROM meta WHERE name = $1";
pub(super) const META_DROP: &str = "DELETE FROM meta WHERE name = $1";
