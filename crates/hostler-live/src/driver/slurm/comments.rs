//! Why jobs wait, told to their users by their own tools.
//!
//! Slurm keeps the tasks of an array that wait as one job, and cuts off each that is changed by
//! itself: so they are told together, by the reason of the first.

use std::collections::BTreeSet;
use std::ops::Bound;

use hostler_core::reason::Reason;

use super::calls::{COMMENT, Deed};
use super::read::{SlurmJob, Stands};
use super::{Seen, SlurmDriver};
use crate::host::Desk;

/// Comments that are asked for at one look, at most.
const COMMENTS: usize = 20;

/// Bytes of the name of tasks that wait together; an array with more holes is not told.
const NAME_BYTES_MAX: usize = 4096;

impl SlurmDriver {
    /// Tells users why their jobs wait, where that is news. Who comes after those that were told
    /// last is the first to be told now: reasons change faster than they can be written.
    pub(super) fn comment(&mut self, desk: &Desk) {
        if !self.settings.comments {
            return;
        }
        let (mut news, mut told) = (Vec::new(), BTreeSet::new());
        let last = Bound::Excluded(self.commented.as_str());
        let after = self.seen.range::<str, _>((last, Bound::Unbounded));
        let before =
            self.seen.range::<str, _>((Bound::Unbounded, Bound::Included(&*self.commented)));
        for (name, seen) in after.chain(before) {
            if news.len() == COMMENTS {
                break;
            }
            let together = seen.job.together.as_deref();
            if together.is_some_and(|array| told.contains(array)) {
                continue;
            }
            let Some(text) = self.text_for(desk, name, seen) else { continue };
            told.extend(together);
            if seen.job.comment != text {
                news.push((name.clone(), text));
            }
        }
        for (name, text) in news {
            self.commented.clone_from(&name);
            self.want(&name, Deed::Comment(text));
        }
    }

    /// What is to be said about a job that waits for Hostler.
    fn text_for(&self, desk: &Desk, name: &str, seen: &Seen) -> Option<String> {
        let waits = seen.job.stands == Stands::Waits && self.is_in_room(&seen.job);
        if !waits || !self.comments_on(&seen.job) {
            return None;
        }
        let Some(job) = self.job_here(desk, name) else {
            return self.refused.get(name).map(|why| format!("{COMMENT}{why}"));
        };
        let known = desk.state().job(job).filter(|job| job.lease().is_none())?;
        if known.reason == Reason::New {
            return None;
        }
        let said = desk.job_row(job).map_or("", |row| row.facts.reason.as_str());
        let kept = known.reason == Reason::KeptBack && !said.is_empty();
        let why = if kept { said } else { known.reason.kind() };
        Some(format!("{COMMENT}{why}"))
    }

    /// Whether the comment on a job is ours to write: nobody else has written one.
    pub(super) fn comments_on(&self, job: &SlurmJob) -> bool {
        self.settings.comments && (job.comment.is_empty() || job.comment.starts_with(COMMENT))
    }

    /// What a comment is written on: a job, or all tasks that wait together as they were listed.
    /// None where one of those has been changed since.
    pub(super) fn comment_target<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let Some(together) = &self.seen.get(name)?.job.together else { return Some(name) };
        let as_listed = |(name, seen): (&String, &Seen)| {
            let starts = matches!(self.wanted.get(name), Some(Deed::Start(_)));
            seen.touched <= self.taken && !starts && !self.flies(name)
        };
        let fits = together.len() <= NAME_BYTES_MAX;
        (fits && self.others_with(together).all(as_listed)).then_some(together)
    }

    /// A comment was written.
    pub(super) fn was_told(&mut self, name: &str, text: &str) {
        let Some(seen) = self.seen.get(name) else { return };
        let names: Vec<String> = match &seen.job.together {
            Some(together) => self.others_with(together).map(|(name, _)| name.clone()).collect(),
            None => vec![name.to_owned()],
        };
        for name in names {
            let seen = self.seen.get_mut(&name).expect("it was looked up above");
            text.clone_into(&mut seen.job.comment);
        }
    }

    /// Tasks that were listed together.
    fn others_with(&self, together: &str) -> impl Iterator<Item = (&String, &Seen)> {
        let array = together.split('[').next().unwrap_or(together).to_owned();
        self.seen
            .range(array.clone()..)
            .take_while(move |(name, _)| name.starts_with(&array))
            .filter(move |(_, seen)| seen.job.together.as_deref() == Some(together))
    }
}
