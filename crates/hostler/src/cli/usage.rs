//! The command line of `hostler usage`.

use clap::{Args, ValueEnum};
use time::{Date, Month, PrimitiveDateTime, Time};

use super::values::seconds;

/// Show what jobs used: GPU hours, waiting, and what came to nothing.
///
/// All stays of a job count, those that last up to now; what is across a border of the period is
/// cut there. Days, weeks and months are those of UTC. Admins see all tenants, others their own.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hostler usage
  hostler usage --by tenant --since 2026-10-01 --until 2026-11-01
  hostler usage --by day --since 7d --user ada --csv > ada.csv")]
pub struct UsageArgs {
    /// What to list it by.
    #[arg(long, value_enum, default_value = "user")]
    pub by: By,
    /// When the period begins: so long ago, as in `12h` or `30d`, or a day, as in `2026-10-01`.
    #[arg(long, value_name = "AGO|DAY", default_value = "30d", value_parser = moment)]
    pub since: When,
    /// When it ends; now when left out.
    #[arg(long, value_name = "AGO|DAY", value_parser = moment)]
    pub until: Option<When>,
    /// Only jobs of this tenant.
    #[arg(long, value_name = "NAME")]
    pub tenant: Option<String>,
    /// Only jobs of this user.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Print CSV.
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum By {
    User,
    Tenant,
    Model,
    Group,
    Day,
    Week,
    Month,
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// So many seconds before now.
    Ago(u64),
    /// So many seconds after the epoch.
    At(i64),
}

/// Reads `12h`, `30d` or `2026-10-01`.
fn moment(text: &str) -> Result<When, String> {
    let Some(date) = day(text) else {
        return seconds(text).map(When::Ago).map_err(|_| {
            format!("`{text}` is no moment; write 12h or 30d for so long ago, or a day: 2026-10-01")
        });
    };
    Ok(When::At(PrimitiveDateTime::new(date, Time::MIDNIGHT).assume_utc().unix_timestamp()))
}

fn day(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '-');
    let year = parts.next()?.parse().ok()?;
    let month = Month::try_from(parts.next()?.parse::<u8>().ok()?).ok()?;
    Date::from_calendar_date(year, month, parts.next()?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_ages_or_days() {
        assert_eq!(moment("30d"), Ok(When::Ago(2_592_000)));
        assert_eq!(moment("2026-11-16"), Ok(When::At(1_794_787_200)));
        for wrong in ["2026-13-01", "2026-02-30", "yesterday", "", "30x"] {
            assert!(moment(wrong).is_err(), "{wrong}");
        }
    }
}
