//! Who may come in: tokens by number and by hash, and fresh secrets.
//!
//! Secrets are 256 random bits; only their SHA-256 is kept. A slow hash would add nothing, since
//! such a secret cannot be guessed.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::{HostError, Principal};
use crate::store::{Role, TokenRow};

/// Letters before every secret, so that scanners for leaked ones can find it.
const PREFIX: &str = "hst_";

/// A secret that is shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A fresh secret.
    pub fn generate() -> Result<Secret, HostError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|fault| HostError::Stopped { fault: format!("no randomness: {fault}") })?;
        Ok(Secret(format!("{PREFIX}{}", HEXLOWER.encode(&bytes))))
    }

    /// The secret itself, to show it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn hash(&self) -> String {
        hash_of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What is kept of a secret.
pub fn hash_of(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret.as_bytes()))
}

/// All tokens.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    by_id: BTreeMap<u32, TokenRow>,
    by_hash: BTreeMap<String, u32>,
    /// Counts changes, for copies of the table.
    pub(super) changes: u64,
}

impl Tokens {
    pub(super) fn restore(rows: Vec<TokenRow>) -> Tokens {
        let mut tokens = Tokens::default();
        rows.into_iter().for_each(|row| tokens.put(row));
        tokens
    }

    pub(super) fn put(&mut self, row: TokenRow) {
        self.changes += 1;
        self.by_hash.insert(row.hash.clone(), row.id);
        self.by_id.insert(row.id, row);
    }

    pub(super) fn get(&self, id: u32) -> Option<&TokenRow> {
        self.by_id.get(&id)
    }

    /// Whether there is or was a token with this hash.
    pub(super) fn knows(&self, hash: &str) -> bool {
        self.by_hash.contains_key(hash)
    }

    /// The token that speaks for a node.
    pub(super) fn of_node(&self, node: &str) -> Option<&TokenRow> {
        let speaks = |row: &&TokenRow| {
            row.role == Role::Agent && !row.one_time && row.revoked.is_none() && row.name == node
        };
        self.by_id.values().find(speaks)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TokenRow> {
        self.by_id.values()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Numbers begin at one; zero is the daemon itself.
    pub(super) fn next_id(&self) -> u32 {
        self.by_id.last_key_value().map_or(1, |(id, _)| id + 1)
    }

    /// Whether a token still lets somebody in.
    pub(super) fn lets_in(&self, id: u32) -> bool {
        self.by_id.get(&id).is_some_and(|row| row.revoked.is_none())
    }

    /// Who shows this secret, and whether the token only enrols an agent.
    pub(super) fn authenticate(&self, secret: &str) -> Option<(Principal, bool)> {
        let row = self.by_id.get(self.by_hash.get(&hash_of(secret))?)?;
        if row.revoked.is_some() {
            return None;
        }
        let (user, tenant) = (row.name.clone(), row.tenant.clone());
        Some((Principal { token: row.id, user, role: row.role, tenant }, row.one_time))
    }
}
