//! Replay order: by time, stable, with the disorder of the file named.

use super::notes::{Notes, Places};

/// Restarted segments that are still taken for concatenated traces.
const MAX_SEGMENTS: usize = 1_000;
/// A segment starts where the first one does within this part of that one's span.
const START_TOLERANCE: i64 = 20;

/// Puts `times_us` (file order) into replay order: returns the rows in that order, or `None` when it is the
/// file's. Restarted segments are laid behind each other, which changes their times; with `one_clock` a fall of
/// the time is no restart (dates, sessions on clocks of their own).
pub(crate) fn settle(
    times_us: &mut [i64],
    one_clock: bool,
    places: &Places,
    notes: &mut Notes,
) -> Option<Vec<u32>> {
    let starts = segment_starts(times_us);
    if starts.len() > 1 {
        if let Some(spans) = restarts(times_us, &starts).filter(|_| !one_clock) {
            lay_behind(times_us, &spans, places, notes);
        } else {
            name_disorder(times_us, places, notes);
        }
    }
    let sorted = times_us.is_sorted();
    let order = (!sorted).then(|| {
        let mut order: Vec<u32> = (0..times_us.len() as u32).collect();
        order.sort_by_key(|&row| times_us[row as usize]);
        order
    });
    name_ties(times_us, order.as_deref(), places, notes);
    order
}

/// First rows of the maximal runs of rows whose times do not fall.
fn segment_starts(times_us: &[i64]) -> Vec<usize> {
    let falls = times_us.windows(2).enumerate().filter(|(_, pair)| pair[1] < pair[0]).map(|(at, _)| at + 1);
    std::iter::once(0).take(times_us.len()).chain(falls).collect()
}

/// The segments `begin..end` when every one is in order and starts where the first one starts.
fn restarts(times_us: &[i64], starts: &[usize]) -> Option<Vec<(usize, usize)>> {
    if starts.len() > MAX_SEGMENTS {
        return None;
    }
    let ends = starts[1..].iter().copied().chain([times_us.len()]);
    let segments: Vec<(usize, usize)> = starts.iter().copied().zip(ends).collect();
    let first = times_us[0];
    let span = times_us[segments[0].1 - 1].saturating_sub(first);
    let fits = |&(begin, end): &(usize, usize)| {
        let off = times_us[begin].saturating_sub(first).saturating_abs();
        // Two rows may be late by chance; a start that is not quite the same needs more of them.
        (off == 0 && end - begin >= 2) || (off <= span / START_TOLERANCE && end - begin >= 3)
    };
    segments.iter().all(fits).then_some(segments)
}

/// Shifts every segment so that it starts where the one before ends.
fn lay_behind(times_us: &mut [i64], segments: &[(usize, usize)], places: &Places, notes: &mut Notes) {
    for pair in segments.windows(2) {
        let (begin, end) = pair[1];
        let shift = times_us[begin - 1].saturating_sub(times_us[begin]);
        let value = format!("time falls by {shift} us");
        notes.defer("time_restart", 1, Some(places.get(begin as u32)), Some(&value));
        for time in &mut times_us[begin..end] {
            *time = time.saturating_add(shift);
        }
    }
    notes.detail("time_restart", format!("{} segments laid one behind the other", segments.len()));
}

fn name_disorder(times_us: &[i64], places: &Places, notes: &mut Notes) {
    let mut latest = i64::MIN;
    let (mut late, mut first) = (0, None);
    for (row, &time) in times_us.iter().enumerate() {
        if time < latest {
            late += 1;
            first.get_or_insert((row as u32, latest.saturating_sub(time)));
        }
        latest = latest.max(time);
    }
    if let Some((row, by)) = first {
        notes.mention("out_of_order", late, Some(places.get(row)), Some(&format!("{by} us early")));
    }
    if times_us.len() > 2 && times_us.windows(2).all(|pair| pair[1] <= pair[0]) {
        notes.mention("reversed_log", 1, Some(places.get(0)), None);
    }
}

/// Rows with the time of the row before them in replay order.
fn name_ties(times_us: &[i64], order: Option<&[u32]>, places: &Places, notes: &mut Notes) {
    let at = |position: usize| order.map_or(position as u32, |order| order[position]);
    let (mut ties, mut first) = (0, None::<u32>);
    for position in 1..times_us.len() {
        let (before, row) = (at(position - 1), at(position));
        if times_us[row as usize] == times_us[before as usize] {
            ties += 1;
            first = Some(first.map_or(row, |first| first.min(row)));
        }
    }
    if let Some(row) = first {
        notes.mention(
            "time_ties",
            ties,
            Some(places.get(row)),
            Some(&format!("{} us", times_us[row as usize])),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::notes::Place;
    use super::*;
    use crate::trace::Quality;

    fn run(times: &[i64]) -> (Vec<i64>, Vec<u32>, Quality) {
        let mut places = Places::default();
        (1..=times.len() as u64).for_each(|line| places.push(Place { file: 0, line }));
        let mut notes = Notes::default();
        let mut times = times.to_vec();
        let order = settle(&mut times, false, &places, &mut notes);
        let order = order.unwrap_or_else(|| (0..times.len() as u32).collect());
        (times, order, notes.finish())
    }

    fn codes(quality: &Quality) -> Vec<(&'static str, u64, Option<u64>)> {
        let name = |f: &crate::trace::Finding| (crate::trace::CODES[f.code].code, f.count, f.first_line);
        quality.findings().iter().map(name).collect()
    }

    #[test]
    fn in_order() {
        assert_eq!(run(&[]).1, [0_u32; 0]);
        let (times, order, quality) = run(&[1, 2, 2, 5]);
        assert_eq!((times, order), (vec![1, 2, 2, 5], vec![0, 1, 2, 3]));
        assert_eq!(codes(&quality), [("time_ties", 1, Some(3))]);
    }

    #[test]
    fn late_rows_are_sorted_stably() {
        let (times, order, quality) = run(&[2000, 0, 4000, 2100, 100, 4100, 2100]);
        assert_eq!(times, [2000, 0, 4000, 2100, 100, 4100, 2100]);
        assert_eq!(order, [1, 4, 0, 3, 6, 2, 5]);
        assert_eq!(codes(&quality), [("out_of_order", 4, Some(2)), ("time_ties", 1, Some(7))]);
    }

    #[test]
    fn concatenated_traces_are_laid_behind_each_other() {
        let (times, order, quality) = run(&[0, 10, 20, 0, 5, 0, 7]);
        assert_eq!(times, [0, 10, 20, 20, 25, 25, 32]);
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(codes(&quality), [("time_ties", 2, Some(4)), ("time_restart", 2, Some(4))]);
        // A start that is near but not the same needs three rows.
        let (times, _, quality) = run(&[0, 500, 1000, 3, 400, 900]);
        assert_eq!(times, [0, 500, 1000, 1000, 1397, 1897]);
        assert_eq!(codes(&quality), [("time_ties", 1, Some(4)), ("time_restart", 1, Some(4))]);
        assert_eq!(codes(&run(&[0, 500, 1000, 3, 900]).2), [("out_of_order", 2, Some(4))]);
    }

    #[test]
    fn a_later_shard_first_is_no_restart() {
        let (_, order, quality) = run(&[100, 150, 200, 0, 50, 99]);
        assert_eq!(order, [3, 4, 5, 0, 1, 2]);
        assert_eq!(codes(&quality), [("out_of_order", 3, Some(4))]);
    }

    #[test]
    fn a_reversed_log_is_named() {
        let (_, order, quality) = run(&[30, 20, 20, 10]);
        assert_eq!(order, [3, 1, 2, 0]);
        let want = [("out_of_order", 3, Some(2)), ("time_ties", 1, Some(3)), ("reversed_log", 1, Some(1))];
        assert_eq!(codes(&quality), want);
    }
}
