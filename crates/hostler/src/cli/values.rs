//! Values on the command line that have limits: each refusal names them.

use hostler_live::job::is_variable;
use hostler_live::limits::{
    CPU_MILLI_MAX, GPU_MILLI_MIN, GRACE_SECS_MAX, NAME_CHARS_MAX, SECS_MAX, TASKS_MAX,
};

/// Reads `90`, `90s`, `15m`, `12h` or `2d`.
pub fn seconds(text: &str) -> Result<u64, String> {
    match time(text)? {
        0 => Err("0 is no time; write 1s or more".to_owned()),
        seconds if seconds > SECS_MAX => {
            Err(format!("`{text}` is too long; write {} or less", days(SECS_MAX)))
        }
        seconds => Ok(seconds),
    }
}

/// The same up to an hour, zero included.
pub fn grace(text: &str) -> Result<u64, String> {
    match time(text)? {
        seconds if seconds > GRACE_SECS_MAX => {
            Err(format!("`{text}` is too long; write {GRACE_SECS_MAX}s or less"))
        }
        seconds => Ok(seconds),
    }
}

fn days(seconds: u64) -> String {
    format!("{}d", seconds / 86_400)
}

fn time(text: &str) -> Result<u64, String> {
    let fault = || format!("`{text}` is no time; write 90s, 15m, 12h or 2d");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(fault()),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fault());
    }
    let number: u64 = digits.parse().map_err(|_| fault())?;
    number.checked_mul(unit).ok_or_else(fault)
}

/// Reads the address of a mail.
pub fn address(text: &str) -> Result<String, String> {
    match hostler_live::notice::is_address(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("`{text}` is no address; write one, as in ada@lab.example")),
    }
}

/// Reads `8888`, or `9000:8888` for port 9000 here and 8888 there.
pub fn ports(text: &str) -> Result<(u16, u16), String> {
    let (local, remote) = text.split_once(':').unwrap_or((text, text));
    let port = |part: &str| part.parse().ok().filter(|port| *port > 0);
    let fault =
        || format!("`{text}` is no port; write 8888, or 9000:8888 for 9000 on this machine");
    port(local).zip(port(remote)).ok_or_else(fault)
}

/// Seconds since the epoch: so long ago, or a date or time in UTC.
pub fn moment(text: &str) -> Result<f64, String> {
    if let Ok(ago) = time(text) {
        return Ok((crate::live::now() - ago as f64).max(0.0));
    }
    let (day, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let read = || {
        let mut parts = day.splitn(3, '-');
        let (year, month) = (parts.next()?.parse().ok()?, parts.next()?.parse::<u8>().ok()?);
        let month = time::Month::try_from(month).ok()?;
        let date = time::Date::from_calendar_date(year, month, parts.next()?.parse().ok()?).ok()?;
        let mut parts = clock.splitn(3, ':');
        let (hour, minute) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let second = parts.next().map_or(Ok(0), str::parse).ok()?;
        let at = date.with_hms(hour, minute, second).ok()?.assume_utc();
        (at.unix_timestamp() >= 0).then(|| at.unix_timestamp() as f64)
    };
    read().ok_or_else(|| {
        format!("`{text}` is no time; write 12h or 2d ago, 2026-11-16 or 2026-11-16T09:30")
    })
}

/// Seconds since the epoch: so long from now, as in `+2h`, or a date or time in UTC.
pub fn moment_ahead(text: &str) -> Result<f64, String> {
    if let Some(ahead) = text.strip_prefix('+') {
        let fault = |_| format!("`{text}` is no time to come; write +90s, +15m, +12h or +2d");
        return Ok(crate::live::now() + time(ahead).map_err(fault)? as f64);
    }
    if time(text).is_ok() {
        return Err(format!("write `+{text}` for so long from now"));
    }
    moment(text).map_err(|_| {
        format!(
            "`{text}` is no time to come; write +2h or +1d from now, or a date or time in UTC, as \
             in 2026-11-16 or 2026-11-16T09:30"
        )
    })
}

/// GPUs of one task.
pub fn gpus(text: &str) -> Result<f64, String> {
    let (least, most) = (f64::from(GPU_MILLI_MIN) / 1000.0, CPU_MILLI_MAX / 1000);
    let number = text.parse().ok().filter(|gpus: &f64| {
        let is_part = (least..=1.0).contains(gpus);
        let is_whole = gpus.fract() == 0.0 && (0.0..=f64::from(most)).contains(gpus);
        is_part || is_whole
    });
    number.ok_or_else(|| {
        format!("use 0, a part of one GPU from {least} to 1, or whole ones up to {most}")
    })
}

/// A part of a whole.
pub fn part(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|part: &f64| (0.0..=1.0).contains(part));
    number.ok_or_else(|| "use 0 to 1".to_owned())
}

/// CPU cores of one task.
pub fn cpus(text: &str) -> Result<f64, String> {
    let most = CPU_MILLI_MAX / 1000;
    let fits = |cpus: &f64| *cpus == 0.0 || (0.001..=f64::from(most)).contains(cpus);
    let number = text.parse().ok().filter(fits);
    number.ok_or_else(|| format!("use 0, or from 0.001 to {most} cores"))
}

/// Memory in MiB, or with a unit: `16G`, `512M`, `16GiB`. All of them count by 1024.
pub fn mebibytes(text: &str) -> Result<u32, String> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_uppercase();
    let unit = unit.strip_suffix("IB").or(unit.strip_suffix('B')).unwrap_or(&unit);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u64>().ok().filter(|_| plain);
    let mebibytes = number.and_then(|number| match unit {
        "K" => Some(number.div_ceil(1024)),
        "" | "M" => Some(number),
        "G" => number.checked_mul(1024),
        "T" => number.checked_mul(1024 * 1024),
        _ => None,
    });
    let mebibytes = mebibytes.and_then(|number| u32::try_from(number).ok());
    mebibytes.ok_or_else(|| format!("use MiB from 0 to {}, or a unit as in 16G", u32::MAX))
}

/// Tasks of one job.
pub fn tasks(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|tasks| (1..=TASKS_MAX).contains(tasks));
    number.ok_or_else(|| format!("use 1 to {TASKS_MAX}"))
}

/// Steps that a job will do.
pub fn steps(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|steps| *steps >= 1);
    number.ok_or_else(|| "use a whole number from 1 on".to_owned())
}

/// A name that fits a line.
pub fn name(text: &str) -> Result<String, String> {
    let sane = |char: char| !char.is_control() && char != '/';
    if text.is_empty() || text.chars().count() > NAME_CHARS_MAX || !text.chars().all(sane) {
        return Err(format!(
            "use 1 to {NAME_CHARS_MAX} characters, no slashes and no control characters"
        ));
    }
    Ok(text.to_owned())
}

/// A variable and its value.
pub fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("`{}` is no variable; write NAME=VALUE", text.escape_debug()))?;
    if !is_variable(name) {
        return Err(format!(
            "`{}` is no name of a variable; use letters, digits and `_`, and no digit first",
            name.escape_debug()
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_make_no_sense_are_refused_and_limits_named() {
        for text in ["nan", "inf", "-inf", "-1", "-0.5", "0.009", "1.5", "99999999999", "1e9", ""] {
            let fault = gpus(text).unwrap_err();
            assert!(fault.contains("from 0.01 to 1, or whole ones up to 64000"), "{text}: {fault}");
        }
        assert_eq!(["0", "0.01", "0.5", "1", "8"].map(|text| gpus(text).is_ok()), [true; 5]);
        for text in ["nan", "inf", "-1", "0.0001", "64001", "x"] {
            assert!(cpus(text).unwrap_err().contains("from 0.001 to 64000"), "{text}");
        }
        for text in ["0", "-1", "4097", "1.5", "99999999999"] {
            assert_eq!(tasks(text).unwrap_err(), "use 1 to 4096", "{text}");
        }
        assert_eq!(["0", "-1", "1.5"].map(|text| steps(text).is_err()), [true; 3]);
    }

    #[test]
    fn memory_has_units() {
        let read = ["0", "4096", "512M", "16G", "16g", "16GiB", "2T", "1000K", "1K"];
        let mib = read.map(|text| mebibytes(text).unwrap());
        assert_eq!(mib, [0, 4096, 512, 16_384, 16_384, 16_384, 2_097_152, 1, 1]);
        for text in ["", "G", "-1", "+1", "1.5G", "16X", "16 G", "9999999999", "5000T", "1E"] {
            assert!(mebibytes(text).unwrap_err().contains("as in 16G"), "{text}");
        }
    }

    #[test]
    fn times_have_a_least_and_a_most() {
        assert_eq!(seconds("12h"), Ok(43_200));
        assert_eq!(seconds("0s").unwrap_err(), "0 is no time; write 1s or more");
        assert_eq!(seconds("99999d").unwrap_err(), "`99999d` is too long; write 36600d or less");
        assert_eq!((grace("0"), grace("1h")), (Ok(0), Ok(3600)));
        assert_eq!(grace("2h").unwrap_err(), "`2h` is too long; write 3600s or less");
        for text in ["-1s", "+1s", "1w", "h", "nan", "1.5h", "99999999999999999999s"] {
            assert!(seconds(text).unwrap_err().contains("write 90s, 15m, 12h or 2d"), "{text}");
        }
    }

    #[test]
    fn moments_are_ago_or_dates() {
        assert_eq!(moment("2026-11-16"), Ok(1_794_787_200.0));
        assert_eq!(moment("2026-11-16T09:30"), Ok(1_794_821_400.0));
        assert_eq!(moment("2026-11-16 09:30:05"), Ok(1_794_821_405.0));
        let ago = crate::live::now() - moment("2h").unwrap();
        assert!((7199.0..7210.0).contains(&ago), "{ago}");
        for text in ["yesterday", "2026-13-01", "2026-11-16T25:00", "1969-12-31", "nan", "-1h"] {
            assert!(moment(text).unwrap_err().contains("2026-11-16T09:30"), "{text}");
        }
    }

    #[test]
    fn times_to_come_are_told_with_all_their_forms() {
        assert_eq!(moment_ahead("2026-11-16T09:30"), Ok(1_794_821_400.0));
        let ahead = moment_ahead("+2h").unwrap() - crate::live::now();
        assert!((7190.0..7201.0).contains(&ahead), "{ahead}");
        for text in ["tomorrow", "noon", "2026-13-01", "next week"] {
            let fault = moment_ahead(text).unwrap_err();
            assert!(fault.contains("+2h") && fault.contains("2026-11-16T09:30"), "{fault}");
            assert!(!fault.contains("ago"), "{fault}");
        }
        assert_eq!(moment_ahead("2h").unwrap_err(), "write `+2h` for so long from now");
        assert!(moment_ahead("+soon").unwrap_err().contains("+15m"));
    }

    #[test]
    fn names_fit_a_line() {
        for text in ["", "a/b", "a\nb", "\u{1b}[31m", &"x".repeat(129)] {
            assert!(name(text).unwrap_err().contains("no control characters"), "{text:?}");
        }
        for text in ["1A=x", "=x", "A B=x", "A-B=x", "A\u{7}=x", "Ä=x"] {
            assert!(variable(text).unwrap_err().contains("no digit first"), "{text:?}");
        }
        assert_eq!(variable("_A1=x=y"), Ok(("_A1".to_owned(), "x=y".to_owned())));
    }
}
