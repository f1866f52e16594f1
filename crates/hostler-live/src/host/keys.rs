//! Idempotency keys that were used: for a week, and no more of one token than fit.

use std::collections::BTreeMap;

use hostler_core::units::{Span, Time};

use crate::store::{KeyRow, Row};

/// Time for which keys are remembered.
const KEPT: Span = Span::from_secs(7 * 24 * 3600);

/// Time between looks for keys that are older.
const TIDIED: Span = Span::from_secs(3600);

/// Keys by token and name, and by the order in which they were used.
pub(super) struct Keys {
    by_name: BTreeMap<(u32, String), KeyRow>,
    /// Names by token and first job: numbers of jobs only grow.
    by_age: BTreeMap<(u32, u32), String>,
    /// How many there are of each token.
    counts: BTreeMap<u32, usize>,
    /// Of each token at most.
    most: usize,
    tidied: Time,
}

impl Keys {
    pub(super) fn restore(rows: Vec<KeyRow>, most: usize, now: Time) -> Keys {
        let (by_name, by_age, counts) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut keys = Keys { by_name, by_age, counts, most, tidied: now };
        rows.into_iter().for_each(|row| keys.insert(row));
        keys
    }

    pub(super) fn get(&self, token: u32, key: &str) -> Option<&KeyRow> {
        self.by_name.get(&(token, key.to_owned()))
    }

    /// Remembers a key; the oldest of a token that has too many go.
    pub(super) fn add(&mut self, row: KeyRow) -> Vec<Row> {
        let token = row.token;
        let mut rows = vec![Row::Key(row.clone())];
        self.insert(row);
        while self.counts.get(&token).is_some_and(|count| *count > self.most) {
            let oldest = self.by_age.range((token, 0)..=(token, u32::MAX)).next();
            let Some((_, key)) = oldest else { break };
            let key = key.clone();
            self.remove(token, &key);
            rows.push(Row::KeyGone { token, key });
        }
        rows
    }

    /// Forgets, now and then, what was used too long ago.
    pub(super) fn tidy(&mut self, now: Time) -> Option<Row> {
        if now.since(self.tidied) < TIDIED {
            return None;
        }
        self.tidied = now;
        let before = now.0.saturating_sub(KEPT.0);
        let old = self.by_name.values().filter(|row| row.at < before);
        let old: Vec<(u32, String)> = old.map(|row| (row.token, row.key.clone())).collect();
        old.iter().for_each(|(token, key)| self.remove(*token, key));
        (!old.is_empty()).then_some(Row::KeysGone(before))
    }

    fn insert(&mut self, row: KeyRow) {
        *self.counts.entry(row.token).or_default() += 1;
        self.by_age.insert((row.token, row.first_job), row.key.clone());
        self.by_name.insert((row.token, row.key.clone()), row);
    }

    fn remove(&mut self, token: u32, key: &str) {
        let Some(row) = self.by_name.remove(&(token, key.to_owned())) else { return };
        self.by_age.remove(&(token, row.first_job));
        let count = self.counts.get_mut(&token).expect("a key was counted when it came");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(token: u32, name: &str, first_job: u32, at: Time) -> KeyRow {
        KeyRow { token, key: name.to_owned(), request: String::new(), first_job, jobs: 1, at: at.0 }
    }

    #[test]
    fn the_oldest_key_of_a_token_goes_and_those_of_others_stay() {
        let at = Time::from_secs(1);
        let mut keys = Keys::restore(vec![key(1, "a", 1, at), key(2, "a", 2, at)], 2, at);
        assert_eq!(keys.add(key(1, "b", 3, at)).len(), 1);
        let rows = keys.add(key(1, "c", 4, at));
        assert_eq!(rows[1], Row::KeyGone { token: 1, key: "a".to_owned() });
        assert_eq!(keys.get(1, "a"), None);
        assert!(keys.get(2, "a").is_some() && keys.get(1, "b").is_some());
    }

    #[test]
    fn keys_are_forgotten_after_a_week() {
        let at = Time::from_secs;
        let week = KEPT.0 / 1_000_000;
        let rows = vec![key(1, "a", 1, at(10)), key(1, "b", 2, at(20))];
        let mut keys = Keys::restore(rows, 9, at(0));
        assert_eq!(keys.tidy(at(10)), None);
        assert_eq!(keys.tidy(at(week + 15)), Some(Row::KeysGone(at(15).0)));
        assert!(keys.get(1, "a").is_none() && keys.get(1, "b").is_some());
        assert_eq!(keys.tidy(at(week + 16)), None);
    }
}
