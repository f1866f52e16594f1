//! A journal tells what changed since a number, or that it cannot.

use super::{Change, Journal};
use crate::id::JobId;
use crate::limits::JOURNAL_MAX;

#[test]
fn changes_are_numbered_over_all_questions() {
    let mut journal = Journal::default();
    let [one, two] = [1, 2].map(|id| Change::Queued(JobId(id)));
    assert_eq!((journal.since(0), journal.end()), (Some(&[][..]), 0));
    journal.push(one);
    assert_eq!(journal.since(0), Some(&[one][..]));
    journal.clear();
    journal.push(two);
    // Whoever saw only what was before the question missed something.
    assert_eq!((journal.since(0), journal.since(1)), (None, Some(&[two][..])));
    assert_eq!((journal.since(2), journal.since(3)), (Some(&[][..]), None));
}

#[test]
fn a_journal_that_was_cut_is_noticed_by_every_cache() {
    let mut journal = Journal::default();
    let change = Change::Queued(JobId(0));
    (0..JOURNAL_MAX).for_each(|_| journal.push(change));
    let seen = journal.end();
    assert_eq!(journal.since(0).map(<[Change]>::len), Some(JOURNAL_MAX));
    journal.push(change);
    assert_eq!((journal.since(0), journal.since(seen)), (None, None));
    assert_eq!(journal.since(seen + 1), Some(&[change][..]));
}
