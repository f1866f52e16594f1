//! Times as logs write them: a day and an hour on some clock, without saying in which zone.
//!
//! Only fixed distances from UTC: a zone that moves its clocks in summer needs a table of the
//! world's zones, and a log of local times is ambiguous for an hour each autumn all the same.

use std::fmt;

use time::{Date, Month, OffsetDateTime};

/// Distance of a clock from UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    east_minutes: i64,
}

impl Zone {
    /// What [`Zone::parse`] takes.
    pub const EXPECTED: &'static str = "`UTC` or a distance from it such as `+08:00` or `-0700`";

    /// `UTC`, `Z`, or hours and minutes with a sign; hours alone as in `UTC+8`.
    pub fn parse(text: &str) -> Option<Zone> {
        if text == "UTC" || text == "Z" {
            return Some(Zone::default());
        }
        let named = text.strip_prefix("UTC");
        let distance = named.unwrap_or(text);
        let (sign, clock) = match distance.strip_prefix('+') {
            Some(clock) => (1, clock),
            None => (-1, distance.strip_prefix('-')?),
        };
        let (hours, minutes) = match clock.len() {
            1 | 2 if named.is_some() => (clock, "0"),
            4 => clock.split_at_checked(2)?,
            5 => clock.split_once(':').filter(|(hours, _)| hours.len() == 2)?,
            _ => return None,
        };
        let (hours, minutes) = (number(hours)?, number(minutes)?);
        let known = hours <= 14 && minutes < 60;
        known.then_some(Zone { east_minutes: sign * (60 * hours + minutes) })
    }

    /// Seconds by which clocks of the zone are ahead of UTC.
    pub(crate) fn east_secs(self) -> i64 {
        60 * self.east_minutes
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

/// Seconds since 1970 of an RFC 3339 time, fractions left out; in UTC if it names no zone.
pub(crate) fn parse_origin(text: &str) -> Option<u64> {
    let (time, rest) = text.split_at_checked(19)?;
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let zone = if zone.is_empty() { Zone::default() } else { Zone::parse(zone)? };
    Some(parse_time(time, zone)? / 1000)
}

/// A time origin in UTC (RFC 3339) that many milliseconds later; `None` for other texts.
pub(in crate::trace) fn moved_origin(origin: &str, later_ms: u64) -> Option<String> {
    let time = parse_time(origin.strip_suffix('Z')?, Zone::default())?;
    let time = time.checked_add(later_ms)?;
    let (secs, millis) = (i64::try_from(time / 1000).ok()?, time % 1000);
    let moved = OffsetDateTime::from_unix_timestamp(secs).ok()?;
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    // Without the crate's own formats, which would double its weight.
    let (day, (hour, minute, second)) = (moved.date(), moved.to_hms());
    Some(format!("{day}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
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
    let part = |range| text.get(range).and_then(number).filter(|_| shape);
    let small = |range| part(range).and_then(|number| u8::try_from(number).ok());
    let year = i32::try_from(part(0..4)?).ok()?;
    let month = Month::try_from(small(5..7)?).ok()?;
    let date = Date::from_calendar_date(year, month, small(8..10)?).ok()?;
    Some(i64::from(date.to_julian_day() - OffsetDateTime::UNIX_EPOCH.date().to_julian_day()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_no_calendar_has_are_refused() {
        let secs = |day: &str| parse_day(day, Zone::default());
        assert_eq!(secs("1970-01-02"), Some(86_400));
        assert_eq!(secs("2024-02-29"), Some(1_709_164_800));
        for day in ["2023-02-29", "2024-02-31", "2024-04-31", "2024-13-01", "2024-00-10"] {
            assert_eq!(secs(day), None, "{day}");
        }
        assert_eq!(parse_origin("2024-02-31T00:00:00Z"), None);
    }

    #[test]
    fn origins_become_seconds() {
        assert_eq!(parse_origin("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_origin("2017-10-01T00:00:00Z"), Some(1_506_816_000));
        assert_eq!(parse_origin("2017-10-01T08:00:00.25+08:00"), Some(1_506_816_000));
        assert_eq!(parse_origin("soon"), None);
    }

    #[test]
    fn a_zone_may_follow_its_name() {
        let secs = |zone| Zone::parse(zone).map(Zone::east_secs);
        assert_eq!(secs("UTC+8"), Some(28_800));
        assert_eq!(secs("-05:30"), Some(-19_800));
        assert_eq!(secs("Mars"), None);
    }
}
