//! Who may come in: tokens by number and by hash, and fresh secrets.
//!
//! Secrets are 256 random bits; only their SHA-256 is kept. A slow hash would add nothing, since
//! such a secret cannot be guessed.

use std::collections::BTreeMap;
use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::{HostError, Principal};
use crate::person::Person;
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

/// What stands in place of a hash for users of the daemon's machine: no secret has it.
const LOCAL: &str = "user:";

/// Where the numbers of those begin whom no token lets in, far above all tokens.
const STRANGERS: u32 = 1 << 31;

/// All tokens.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    by_id: BTreeMap<u32, TokenRow>,
    by_hash: BTreeMap<String, u32>,
    /// Users of the daemon's machine who are let in by its socket, by name.
    local: BTreeMap<String, u32>,
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
        if is_local(&row) {
            match row.revoked {
                None => self.local.insert(row.name.clone(), row.id),
                Some(_) if self.local.get(&row.name) == Some(&row.id) => {
                    self.local.remove(&row.name)
                }
                Some(_) => None,
            };
        }
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
        id >= STRANGERS || self.by_id.get(&id).is_some_and(|row| row.revoked.is_none())
    }

    /// Who shows this secret, and whether the token only enrols an agent.
    pub(super) fn authenticate(&self, secret: &str) -> Option<(Principal, bool)> {
        let row = self.by_id.get(self.by_hash.get(&hash_of(secret))?)?;
        if row.revoked.is_some() {
            return None;
        }
        let (user, tenant) = (row.name.clone(), row.tenant.clone());
        let (token, role, person) = (row.id, row.role, row.person.clone());
        Some((Principal { token, user, role, tenant, person }, row.one_time))
    }

    /// The token that stands for a user of the daemon's machine.
    pub(super) fn of_user(&self, name: &str) -> Option<&TokenRow> {
        self.by_id.get(self.local.get(name)?)
    }

    /// Who a user of the daemon's machine is here.
    pub(super) fn local(&self, name: &str, uid: u32) -> Option<Principal> {
        let row = self.of_user(name)?;
        let person = Some(Person { name: name.to_owned(), uid: Some(uid) });
        let (user, tenant) = (name.to_owned(), row.tenant.clone());
        Some(Principal { token: row.id, user, role: row.role, tenant, person })
    }
}

/// Whether a token has no secret and stands for a user of the daemon's machine.
pub(super) fn is_local(row: &TokenRow) -> bool {
    row.hash.starts_with(LOCAL)
}

/// What stands in place of the hash of such a token; others of the same user may have been revoked.
pub(super) fn local_hash(name: &str, token: u32) -> String {
    format!("{LOCAL}{name}:{token}")
}

/// A user of the daemon's machine for whom nobody said anything, where all are let in.
pub fn stranger(name: &str, uid: u32, tenant: &str) -> Option<Principal> {
    let token = STRANGERS.checked_add(uid)?;
    let person = Some(Person { name: name.to_owned(), uid: Some(uid) });
    let (user, tenant) = (name.to_owned(), tenant.to_owned());
    Some(Principal { token, user, role: Role::User, tenant, person })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(id: u32, name: &str, revoked: Option<u64>) -> TokenRow {
        TokenRow {
            id,
            hash: local_hash(name, id),
            role: Role::User,
            tenant: "lab".to_owned(),
            name: name.to_owned(),
            created: 1,
            revoked,
            one_time: false,
            person: None,
        }
    }

    #[test]
    fn users_of_the_machine_are_known_by_name_and_by_no_secret() {
        let mut tokens = Tokens::restore(vec![user(1, "ada", Some(2)), user(2, "ada", None)]);
        let ada = tokens.local("ada", 1001).unwrap();
        assert_eq!((ada.token, ada.person.unwrap().uid), (2, Some(1001)));
        assert_eq!(tokens.local("eve", 1001), None);
        for secret in ["user:ada:2", "ada", "", &local_hash("ada", 2)] {
            assert_eq!(tokens.authenticate(secret), None, "{secret}");
        }
        // What is heard late of the older one does not matter.
        tokens.put(user(1, "ada", Some(2)));
        assert!(tokens.local("ada", 1001).is_some());
        tokens.put(user(2, "ada", Some(3)));
        assert_eq!(tokens.local("ada", 1001), None);
    }

    #[test]
    fn strangers_are_users_with_numbers_that_no_token_has() {
        let eve = stranger("eve", 1002, "guests").unwrap();
        assert_eq!((eve.token, eve.role), (STRANGERS + 1002, Role::User));
        assert_eq!(stranger("far", u32::MAX, "guests"), None);
    }
}
