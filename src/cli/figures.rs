//! Figures as people read them: spans, tokens, cost.

/// Returns a span of milliseconds with its two largest units: `0.4s`, `42s`, `3m12s`, `2h05m`, `3d04h`.
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1000;
    match seconds {
        0 => format!("0.{}s", ms.max(0) / 100),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Returns a count with at most four characters: `950`, `1.2k`, `87k`, `3.4M`; `-` for none.
pub fn count(number: i64) -> String {
    let tenths = |unit: i64| format!("{}.{}", number / unit, number % unit / (unit / 10));
    match number {
        ..=0 => "-".to_owned(),
        1..1000 => number.to_string(),
        1000..10_000 => format!("{}k", tenths(1000)),
        10_000..1_000_000 => format!("{}k", number / 1000),
        1_000_000..10_000_000 => format!("{}M", tenths(1_000_000)),
        _ => format!("{}M", number / 1_000_000),
    }
}

/// Returns US dollars; `-` where the cost is unknown or nothing.
pub fn cost(usd: f64) -> String {
    if usd <= 0.0 {
        "-".to_owned()
    } else if usd < 0.005 {
        "<$0.01".to_owned()
    } else {
        format!("${usd:.2}")
    }
}

/// Returns the time of day of a wall clock, UTC: `09:05:07`.
pub fn time_of_day(at_ms: i64) -> String {
    let second = at_ms.div_euclid(1000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// Returns a moment, UTC: `2026-12-01 09:05:07Z`.
pub fn moment(at_ms: i64) -> String {
    let day = jiff::Timestamp::from_millisecond(at_ms).map(|at| at.to_string());
    let day = day.as_deref().ok().and_then(|text| text.split_once('T')).map_or("?", |(day, _)| day);
    format!("{day} {}Z", time_of_day(at_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_counts_and_costs_are_short_and_keep_their_size() {
        for (ms, expected) in [
            (-5, "0.0s"),
            (0, "0.0s"),
            (449, "0.4s"),
            (59_999, "59s"),
            (192_000, "3m12s"),
            (7_500_000, "2h05m"),
            (273_600_000, "3d04h"),
        ] {
            assert_eq!(span(ms), expected, "{ms}");
        }
        for (number, expected) in
            [(0, "-"), (999, "999"), (1_250, "1.2k"), (87_400, "87k"), (3_450_000, "3.4M"), (12_000_000, "12M")]
        {
            assert_eq!(count(number), expected, "{number}");
        }
        for (usd, expected) in [(0.0, "-"), (0.001, "<$0.01"), (0.0149, "$0.01"), (12.3, "$12.30"), (f64::NAN, "$NaN")]
        {
            assert_eq!(cost(usd), expected, "{usd}");
        }
        assert_eq!(moment(1_796_116_507_000), "2026-12-01 09:15:07Z");
        assert_eq!(moment(i64::MAX).split(' ').next(), Some("?"));
    }
}
