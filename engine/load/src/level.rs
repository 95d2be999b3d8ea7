//! A piecewise linear level over time: a rate, or a number of busy connections.
//!
//! A level is a list of pieces; the last one has no end. The area under the level is the number of events due by an
//! instant. Open loops need its inverse: the instant by which a given number of events are due. With it, arrivals at
//! any variable rate are arrivals at rate 1 on another clock (Lewis & Shedler 1979, Nav. Res. Logist. Q. 26:403), and
//! their distribution over the workers does not depend on the shape.

use crate::Nanos;

pub(crate) const NS_PER_S: f64 = 1e9;

/// A level over time. Times are nanoseconds since the start of the run; areas are levels multiplied by seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    pieces: Vec<Piece>,
}

/// A straight line from `start_s` to the start of the next piece.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    start_s: f64,
    /// Area under all earlier pieces.
    before: f64,
    from: f64,
    slope_per_s: f64,
}

impl Piece {
    fn at(&self, time_s: f64) -> f64 {
        (self.from + self.slope_per_s * (time_s - self.start_s)).max(0.0)
    }

    /// Area from the start of the piece to `time_s`.
    fn area_to(&self, time_s: f64) -> f64 {
        (self.from + self.at(time_s)) / 2.0 * (time_s - self.start_s)
    }
}

impl Level {
    /// A constant level.
    pub fn flat(level: f64) -> Self {
        Self { pieces: vec![Piece { start_s: 0.0, before: 0.0, from: level, slope_per_s: 0.0 }] }
    }

    /// Ends the last piece at `start_s` and begins another one at the level `from`.
    pub(crate) fn then(mut self, start_s: f64, from: f64, slope_per_s: f64) -> Self {
        let last = self.pieces[self.pieces.len() - 1];
        let before = last.before + last.area_to(start_s);
        self.pieces.push(Piece { start_s, before, from, slope_per_s });
        self
    }

    /// The level at an instant.
    pub fn at(&self, time: Nanos) -> f64 {
        let time_s = time as f64 / NS_PER_S;
        let piece = self.pieces.partition_point(|piece| piece.start_s <= time_s).max(1) - 1;
        self.pieces[piece].at(time_s)
    }

    /// The instant at which the area reaches `area`; `Nanos::MAX` if it never does.
    pub fn when(&self, area: f64) -> Nanos {
        // The first piece that reaches `area`. This skips pieces of level 0, which add nothing.
        let piece = self.pieces.partition_point(|piece| piece.before <= area).max(1) - 1;
        let Piece { start_s, before, from, slope_per_s } = self.pieces[piece];
        let rest = area - before;
        // Solves from * x + slope * x^2 / 2 = rest, in the form that stays exact for small slopes.
        let root = (from * from + 2.0 * slope_per_s * rest).max(0.0).sqrt();
        if from + root <= 0.0 {
            return if rest > 0.0 { Nanos::MAX } else { nanos(start_s) };
        }
        nanos(start_s + 2.0 * rest / (from + root))
    }

    /// The first instant from `time` on at which the level is at least `threshold`, which must be above 0; `None` if
    /// there is none.
    pub fn first_reaching(&self, threshold: f64, time: Nanos) -> Option<Nanos> {
        let time_s = time as f64 / NS_PER_S;
        for (number, piece) in self.pieces.iter().enumerate() {
            let end_s = self.pieces.get(number + 1).map_or(f64::INFINITY, |next| next.start_s);
            let from_s = piece.start_s.max(time_s);
            if from_s >= end_s {
                continue;
            }
            let here = piece.at(from_s);
            if here >= threshold {
                return Some(nanos(from_s).max(time));
            }
            let reached_s = from_s + (threshold - here) / piece.slope_per_s;
            if piece.slope_per_s > 0.0 && reached_s < end_s {
                return Some(nanos(reached_s).max(time));
            }
        }
        None
    }
}

fn nanos(time_s: f64) -> Nanos {
    (time_s * NS_PER_S).round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    #[test]
    fn a_flat_level_reaches_every_area_in_proportion() {
        let level = Level::flat(3.0);
        assert_eq!(level.when(0.0), 0);
        assert_eq!(level.when(1.0), 333_333_333);
        assert_eq!(level.when(3.0 * 86_400.0), 86_400 * S, "no drift after a day");
        assert_eq!(level.at(7 * S), 3.0);
    }

    #[test]
    fn a_level_of_zero_never_gets_anywhere() {
        assert_eq!(Level::flat(0.0).when(1.0), Nanos::MAX);
        assert_eq!(Level::flat(0.0).first_reaching(0.5, 0), None);
    }

    #[test]
    fn thresholds_are_found_from_any_instant() {
        // 2 until 10 s, then down to 0 at 20 s, then 5.
        let level = Level::flat(2.0).then(10.0, 2.0, -0.2).then(20.0, 5.0, 0.0);
        assert_eq!(level.first_reaching(1.5, 3 * S), Some(3 * S));
        assert_eq!(level.first_reaching(1.5, 12 * S), Some(12 * S));
        assert_eq!(level.first_reaching(1.5, 13 * S), Some(20 * S));
        assert_eq!(level.first_reaching(4.5, 0), Some(20 * S));
        assert_eq!(level.first_reaching(5.5, 0), None);
    }
}
