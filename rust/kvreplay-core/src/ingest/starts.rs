//! When sessions begin whose times count from their own start.
//!
//! Recordings of single sessions (WEKA, closed-loop turns without a time) do not say when a session began. A
//! replay of many of them needs starts all the same, and how many sessions overlap decides what a cache can
//! hold. So the starts are a stated choice of the caller, never a guess.

use super::options::unknown;
use crate::error::{Error, Result};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A row on everybody's clock.
pub(crate) const NO_OWNER: u32 = u32::MAX;
/// Times from here on (the year 2000) are dates: sessions that have them need no start.
const FIRST_DATE_US: i64 = 946_684_800_000_000;

/// When sessions are begun, before `concurrency` may hold them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartRule {
    /// All at time 0, which leaves the times as they are in the files.
    #[default]
    Together,
    /// One every so many microseconds, in file order.
    Every {
        /// Microseconds between two starts.
        gap_us: u64,
    },
    /// Each at a time of its own, drawn evenly from a span.
    Uniform {
        /// Length of the span in microseconds.
        span_us: u64,
    },
}

/// When sessions begin whose times count from their own start. Sessions whose times are dates stay where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionStarts {
    /// When each is begun.
    pub rule: StartRule,
    /// At most this many run at once: a session waits until one has sent its last request. `None` = no limit.
    pub concurrency: Option<u32>,
    /// Seed of the draws of [`StartRule::Uniform`].
    pub seed: u64,
}

impl SessionStarts {
    /// Sets the rule from `together`, `every(30s)` or `uniform(8h)` (units: us, ms, s, m, h, d).
    ///
    /// # Errors
    /// `Config` for any other text.
    pub fn set_rule(&mut self, text: &str) -> Result<()> {
        const CHOICES: &str = "together, every(30s) or uniform(8h), with us, ms, s, m, h or d";
        let text = text.trim();
        let argument =
            |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')').and_then(duration_us);
        self.rule = if text == "together" {
            StartRule::Together
        } else if let Some(gap_us) = argument("every") {
            StartRule::Every { gap_us }
        } else if let Some(span_us) = argument("uniform") {
            StartRule::Uniform { span_us }
        } else {
            return Err(unknown("session_starts", text, CHOICES));
        };
        Ok(())
    }

    /// The rule as [`Self::set_rule`] takes it, with the limit and the seed where they matter.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = match self.rule {
            StartRule::Together => "together".to_owned(),
            StartRule::Every { gap_us } => format!("every({gap_us}us)"),
            StartRule::Uniform { span_us } => format!("uniform({span_us}us), seed {}", self.seed),
        };
        if let Some(most) = self.concurrency {
            text = format!("{text}, at most {most} at once");
        }
        text
    }

    /// The start of session number `session` before any limit.
    fn drawn_us(&self, session: usize) -> i64 {
        let us = match self.rule {
            StartRule::Together => 0,
            StartRule::Every { gap_us } => gap_us.saturating_mul(session as u64),
            StartRule::Uniform { span_us } => {
                ((u128::from(bits(self.seed, session as u64)) * u128::from(span_us)) >> 64) as u64
            }
        };
        i64::try_from(us).unwrap_or(i64::MAX)
    }

    /// The start of each session; `lasts_us` says how long after its start a session sends its last request.
    fn starts_us(&self, lasts_us: &[i64]) -> Vec<i64> {
        let mut starts: Vec<i64> = (0..lasts_us.len()).map(|session| self.drawn_us(session)).collect();
        let Some(most) = self.concurrency else { return starts };
        let mut order: Vec<usize> = (0..starts.len()).collect();
        order.sort_by_key(|&session| starts[session]);
        let mut ends = BinaryHeap::new();
        for session in order {
            if ends.len() >= most as usize
                && let Some(Reverse(end)) = ends.pop()
            {
                starts[session] = starts[session].max(end);
            }
            ends.push(Reverse(starts[session].saturating_add(lasts_us[session].max(0))));
        }
        starts
    }
}

/// Number `n` of the stream of a seed: splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
fn bits(seed: u64, n: u64) -> u64 {
    let mut z = seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A duration with its unit, in microseconds.
fn duration_us(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(digits);
    let unit_us: u64 = match unit.trim() {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 6 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.pow(fraction.len() as u32);
    let whole_us = whole.parse::<u64>().ok()?.checked_mul(unit_us)?;
    let part_us = u128::from(fraction.parse::<u64>().ok()?) * u128::from(unit_us) / u128::from(scale);
    whole_us.checked_add(part_us as u64)
}

/// Moves every row by the start of its owner. Returns what to say about it, or `None` when no row has an owner.
///
/// Times that are dates are left alone.
///
/// # Errors
/// `Config` when a rule or a limit was asked for and the times are dates.
pub(crate) fn place(
    times_us: &mut [i64],
    owners: &[u32],
    sessions: &SessionStarts,
) -> Result<Option<String>> {
    let owned = || owners.iter().zip(0..).filter(|owner| *owner.0 != NO_OWNER);
    let Some(count) = owned().map(|(&owner, _)| owner as usize + 1).max() else { return Ok(None) };
    if owned().any(|(_, row): (_, usize)| times_us[row] >= FIRST_DATE_US) {
        if *sessions != SessionStarts::default() {
            let hint = "leave session_starts and concurrency out: these sessions say when they began";
            return Err(Error::config("session_starts: the times of the trace are dates", hint));
        }
        return Ok(None);
    }
    let mut lasts_us = vec![0_i64; count];
    for (&owner, row) in owned() {
        let last = &mut lasts_us[owner as usize];
        *last = times_us[row].max(*last);
    }
    let starts_us = sessions.starts_us(&lasts_us);
    for (&owner, row) in owned() {
        times_us[row] = times_us[row].saturating_add(starts_us[owner as usize]);
    }
    let rule = sessions.text();
    Ok(Some(format!("sessions without a start of their own: {count}, begun {rule} (session_starts)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(rule: &str, concurrency: Option<u32>, seed: u64) -> SessionStarts {
        let mut starts = SessionStarts { concurrency, seed, ..SessionStarts::default() };
        starts.set_rule(rule).unwrap();
        starts
    }

    #[test]
    fn rules_are_read_and_written() {
        for (text, rule) in [
            ("together", StartRule::Together),
            ("every(30s)", StartRule::Every { gap_us: 30_000_000 }),
            ("every(0us)", StartRule::Every { gap_us: 0 }),
            ("every(1.5m)", StartRule::Every { gap_us: 90_000_000 }),
            (" uniform( 8 h ) ", StartRule::Uniform { span_us: 28_800_000_000 }),
            ("uniform(2d)", StartRule::Uniform { span_us: 172_800_000_000 }),
        ] {
            assert_eq!(starts(text, None, 0).rule, rule, "{text}");
        }
        for text in
            ["", "every", "every(30)", "every(s)", "every(1.s)", "uniform(-1h)", "uniform(1w)", "x(1s)"]
        {
            assert!(SessionStarts::default().set_rule(text).is_err(), "{text}");
        }
        assert!(SessionStarts::default().set_rule("uniform(99999999999999999d)").is_err());
        assert_eq!(starts("uniform(1s)", Some(2), 7).text(), "uniform(1000000us), seed 7, at most 2 at once");
    }

    #[test]
    fn starts_by_hand() {
        assert_eq!(starts("together", None, 0).starts_us(&[5, 9]), [0, 0]);
        assert_eq!(starts("every(10us)", None, 0).starts_us(&[5, 9, 1]), [0, 10, 20]);
        // Two at once: the third begins when the first has ended, the fourth when the third has.
        assert_eq!(starts("together", Some(2), 0).starts_us(&[5, 9, 1, 4]), [0, 0, 5, 6]);
        assert_eq!(starts("every(4us)", Some(1), 0).starts_us(&[5, 1, 7]), [0, 5, 8]);
        let drawn = starts("uniform(1000us)", None, 7).starts_us(&[0; 1000]);
        assert!(drawn.iter().all(|us| (0..1000).contains(us)));
        assert_eq!(drawn, starts("uniform(1000us)", None, 7).starts_us(&[0; 1000]));
        assert_ne!(drawn, starts("uniform(1000us)", None, 8).starts_us(&[0; 1000]));
        let mean = drawn.iter().sum::<i64>() / 1000;
        assert!((450..550).contains(&mean), "{mean}");
    }

    #[test]
    fn at_most_so_many_run_at_once() {
        let lasts: Vec<i64> = (0..60).map(|n| (n * 37) % 91).collect();
        let begun = starts("uniform(200us)", Some(3), 5).starts_us(&lasts);
        for at in 0..500 {
            let running = (0..60).filter(|&s| begun[s] <= at && at < begun[s] + lasts[s]).count();
            assert!(running <= 3, "{running} at {at}");
        }
    }

    #[test]
    fn rows_move_with_their_owner() {
        let mut times = [0, 3, 0, 9, 5];
        let said = place(&mut times, &[0, 0, 1, NO_OWNER, 1], &starts("every(10us)", None, 0)).unwrap();
        assert_eq!(times, [0, 3, 10, 9, 15]);
        assert_eq!(
            said.unwrap(),
            "sessions without a start of their own: 2, begun every(10us) (session_starts)"
        );
        assert_eq!(place(&mut times, &[], &starts("every(10us)", None, 0)).unwrap(), None);
        let mut dates = [FIRST_DATE_US, 7];
        assert!(place(&mut dates, &[0, 0], &starts("every(10us)", None, 0)).is_err());
        assert_eq!(place(&mut dates, &[0, 0], &SessionStarts::default()).unwrap(), None);
        assert_eq!(dates, [FIRST_DATE_US, 7]);
    }
}
