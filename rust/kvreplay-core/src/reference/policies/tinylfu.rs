//! Twin of W-TinyLFU with a sketch of whole bytes.

use super::{Ask, Slow, cut};

struct Sketch {
    rows: [Vec<u8>; 4],
    size: u64,
    period: u64,
}

impl Sketch {
    fn cell(&self, block: u32, row: usize) -> usize {
        let mut x = u64::from(block).wrapping_add((row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        x ^= x >> 30;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^= x >> 27;
        x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^= x >> 31;
        (x % self.rows[row].len() as u64) as usize
    }
    fn record(&mut self, block: u32) {
        let cells: Vec<usize> = (0..4).map(|row| self.cell(block, row)).collect();
        let mut rose = false;
        for (row, cell) in cells.into_iter().enumerate() {
            if self.rows[row][cell] < 15 {
                self.rows[row][cell] += 1;
                rose = true;
            }
        }
        self.size += u64::from(rose);
        if rose && self.size >= self.period {
            let all = || self.rows.iter().flatten();
            let odd = all().filter(|&&n| n % 2 == 1).count() as u64;
            self.rows.iter_mut().flatten().for_each(|n| *n /= 2);
            self.size = (self.size - odd / 4) / 2;
        }
    }
    fn count(&self, block: u32) -> u8 {
        (0..4).map(|row| self.rows[row][self.cell(block, row)]).min().unwrap()
    }
}

pub(super) struct WTinyLfu {
    window: Vec<u32>,
    probation: Vec<u32>,
    protected: Vec<u32>,
    sketch: Sketch,
    w: usize,
    main: usize,
}

impl WTinyLfu {
    pub(super) fn new(capacity: u32) -> Self {
        let c = capacity as usize;
        let w = (c / 100).max(1);
        let width = c.max(8).next_power_of_two();
        let rows = std::array::from_fn(|_| vec![0; width]);
        let sketch = Sketch { rows, size: 0, period: 10 * c as u64 };
        Self { window: vec![], probation: vec![], protected: vec![], sketch, w, main: c.saturating_sub(w) }
    }
    /// Moves the window's oldest block to probation.
    fn promote(&mut self) {
        let candidate = self.window.remove(0);
        self.probation.push(candidate);
    }
}

impl Slow for WTinyLfu {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        self.sketch.record(block);
        if cut(&mut self.window, block) {
            self.window.push(block);
        } else if cut(&mut self.protected, block) {
            self.protected.push(block);
        } else {
            cut(&mut self.probation, block);
            self.protected.push(block);
            if self.protected.len() > self.main * 8 / 10 {
                let back = self.protected.remove(0);
                self.probation.push(back);
            }
        }
    }
    fn insert(&mut self, block: u32, _: bool, ask: &Ask<'_>) -> Option<u32> {
        self.sketch.record(block);
        let mut gone = None;
        if self.window.len() == self.w {
            let candidate = self.window[0];
            let guarded = !(ask.may_leave)(candidate);
            let in_main = self.probation.iter().chain(&self.protected);
            let victim = in_main.copied().find(|&b| (ask.may_leave)(b));
            if self.probation.len() + self.protected.len() < self.main {
                self.promote();
            } else if let Some(victim) =
                victim.filter(|&v| guarded || self.sketch.count(candidate) > self.sketch.count(v))
            {
                cut(&mut self.probation, victim);
                cut(&mut self.protected, victim);
                self.promote();
                gone = Some(victim);
            } else {
                let at = self.window.iter().position(|&b| !guarded || (ask.may_leave)(b)).unwrap();
                gone = Some(self.window.remove(at));
            }
        }
        self.window.push(block);
        gone
    }
    fn remove(&mut self, block: u32) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            cut(list, block);
        }
    }
}
