//! Times as logs write them: a day and an hour on some clock, without saying in which zone.
//!
//! Only fixed distances from UTC: a zone that moves its clocks in summer needs a table of the
//! world's zones, and a log of local times is ambiguous for an hour each autumn all the same.

use std::fmt;

/// Distance of a clock from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    east_minutes: i64,
}

impl Zone {
    /// What [`Zone::parse`] takes.
    pub const EXPECTED: &'static str = "`UTC` or a distance from it such as `+08:00` or `-0700`";

    /// `UTC`, `Z`, or hours and minutes with a sign.
    pub fn parse(text: &str) -> Option<Zone> {
        if text == "UTC" || text == "Z" {
            return Some(Zone::default());
        }
        let sign = match text.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let digits: String = text.get(1..)?.chars().filter(|letter| *letter != ':').collect();
        let is_time = digits.len() == 4 && matches!(text.len(), 5 | 6);
        let (hours, minutes) = (number(digits.get(0..2)?)?, number(digits.get(2..4)?)?);
        let known = is_time && hours <= 14 && minutes < 60;
        known.then_some(Zone { east_minutes: sign * (60 * hours + minutes) })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, minutes) = if self.east_minutes < 0 {
            ('-', -self.east_minutes)
        } else {
            ('+', self.east_minutes)
        };
        match minutes {
            0 => write!(f, "UTC"),
            _ => write!(f, "UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        }
    }
}

const DAY_SECS: i64 = 86_400;

/// Milliseconds since 1970 of `YYYY-MM-DD HH:MM:SS` (or with a `T`) on a clock of the zone.
pub(super) fn parse_time(text: &str, zone: Zone) -> Option<u64> {
    let (day, clock) = (text.get(0..10)?, text.get(11..19)?);
    let separated = matches!(text.as_bytes()[10], b' ' | b'T');
    let mut parts = clock.split(':').map(|part| number(part).filter(|_| part.len() == 2));
    let [hour, minute, second] = [parts.next()??, parts.next()??, parts.next()??];
    let is_clock = parts.next().is_none() && hour < 24 && minute < 60 && second < 61;
    if text.len() != 19 || !separated || !is_clock {
        return None;
    }
    let local = days(day)? * DAY_SECS + 3600 * hour + 60 * minute + second;
    u64::try_from(1000 * (local - 60 * zone.east_minutes)).ok()
}

/// Seconds since 1970 of the beginning of a day `YYYY-MM-DD` in the zone.
pub(super) fn parse_day(text: &str, zone: Zone) -> Option<u64> {
    u64::try_from(days(text)? * DAY_SECS - 60 * zone.east_minutes).ok()
}

/// A time origin in UTC (RFC 3339) that many milliseconds later; `None` for other texts.
pub(in crate::trace) fn moved_origin(origin: &str, later_ms: u64) -> Option<String> {
    let time = parse_time(origin.strip_suffix('Z')?, Zone::default())?;
    let time = time.checked_add(later_ms)?;
    let (secs, millis) = (time / 1000, time % 1000);
    let (year, month, day) = civil(i64::try_from(secs).ok()? / DAY_SECS);
    let clock = secs % DAY_SECS as u64;
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// The origin of times counted from 1970.
pub(super) const EPOCH: &str = "1970-01-01T00:00:00Z";

fn number(digits: &str) -> Option<i64> {
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| digits.parse().ok()).flatten()
}

/// Days since 1970 of `YYYY-MM-DD`.
fn days(text: &str) -> Option<i64> {
    let shape = text.len() == 10 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-';
    let part = |range| text.get(range).and_then(number);
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let valid = shape && (1..=12).contains(&month) && day >= 1;
    if !valid || day > month_days(year, month) {
        return None;
    }
    let before: i64 = (1..month).map(|month| month_days(year, month)).sum();
    Some(year_start(year) - year_start(1970) + before + day - 1)
}

/// Days from the beginning of year 1 to that of another, by the rule of leap years.
fn year_start(year: i64) -> i64 {
    let past = year - 1;
    365 * past + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)
}

fn month_days(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Year, month and day of a day since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + year_start(1970);
    // 146,097 days are 400 years; the guess is at most one year too late.
    let mut year = days * 400 / 146_097 + 1;
    while year_start(year) > days {
        year -= 1;
    }
    while year_start(year + 1) <= days {
        year += 1;
    }
    let (mut left, mut month) = (days - year_start(year), 1);
    while left >= month_days(year, month) {
        left -= month_days(year, month);
        month += 1;
    }
    (year, month, left + 1)
}
