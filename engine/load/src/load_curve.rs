//! A load that changes over time: a rate, or a number of busy connections, as a piecewise linear function of time.
//!
//! The area under the curve of a rate is the number of events due by an instant. An open loop needs the inverse: the
//! time at which a given number of events are due. A unit-rate arrival process, mapped through this inverse, gives the
//! arrivals of any variable rate (Lewis & Shedler 1979, Nav. Res. Logist. Q. 26:403), so one generator of gaps serves
//! every load shape.

use crate::Nanos;

pub(crate) const NS_PER_S: f64 = 1e9;

/// Events per second, or busy connections, as a function of time.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadCurve {
    /// In chronological order; the last one has no end.
    segments: Vec<Segment>,
}

/// A straight line from `start_s` (seconds since the start of the run) to the start of the next segment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    start_s: f64,
    /// Area under all earlier segments, in events.
    area_before: f64,
    start_value: f64,
    slope_per_s: f64,
}

impl Segment {
    fn value_at(&self, time_s: f64) -> f64 {
        (self.start_value + self.slope_per_s * (time_s - self.start_s)).max(0.0)
    }

    /// Area from the start of the segment to `time_s`.
    fn area_until(&self, time_s: f64) -> f64 {
        (self.start_value + self.value_at(time_s)) / 2.0 * (time_s - self.start_s)
    }
}

impl LoadCurve {
    /// The same `value` at all times.
    pub fn constant(value: f64) -> Self {
        Self {
            segments: vec![Segment { start_s: 0.0, area_before: 0.0, start_value: value, slope_per_s: 0.0 }],
        }
    }

    /// Appends a segment that starts at `start_s`, where the last one ends.
    pub(crate) fn with_segment(mut self, start_s: f64, start_value: f64, slope_per_s: f64) -> Self {
        let last = self.segments[self.segments.len() - 1];
        let area_before = last.area_before + last.area_until(start_s);
        self.segments.push(Segment { start_s, area_before, start_value, slope_per_s });
        self
    }

    /// The rate or the number of busy connections at `time`.
    pub fn value_at(&self, time: Nanos) -> f64 {
        let time_s = time as f64 / NS_PER_S;
        let index = self.segments.partition_point(|segment| segment.start_s <= time_s).max(1) - 1;
        self.segments[index].value_at(time_s)
    }

    /// The time at which the area under the curve reaches `area`; `Nanos::MAX` if it never does.
    pub fn time_of_area(&self, area: f64) -> Nanos {
        // The first segment that reaches `area`. Segments of value 0 add no area and are skipped.
        let index = self.segments.partition_point(|segment| segment.area_before <= area).max(1) - 1;
        let Segment { start_s, area_before, start_value, slope_per_s } = self.segments[index];
        let rest = area - area_before;
        // Solves start_value * x + slope * x^2 / 2 = rest, in the form that stays exact for small slopes.
        let root = (start_value * start_value + 2.0 * slope_per_s * rest).max(0.0).sqrt();
        if start_value + root <= 0.0 {
            return if rest > 0.0 { Nanos::MAX } else { nanos(start_s) };
        }
        nanos(start_s + 2.0 * rest / (start_value + root))
    }

    /// The first time, not before `time`, at which the value is at least `threshold`, which must be above 0. `None` if
    /// there is no such time.
    pub fn first_time_at_least(&self, threshold: f64, time: Nanos) -> Option<Nanos> {
        let time_s = time as f64 / NS_PER_S;
        for (index, segment) in self.segments.iter().enumerate() {
            let end_s = self.segments.get(index + 1).map_or(f64::INFINITY, |next| next.start_s);
            let from_s = segment.start_s.max(time_s);
            if from_s >= end_s {
                continue;
            }
            let value = segment.value_at(from_s);
            if value >= threshold {
                return Some(nanos(from_s).max(time));
            }
            let reached_s = from_s + (threshold - value) / segment.slope_per_s;
            if segment.slope_per_s > 0.0 && reached_s < end_s {
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
    fn a_constant_curve_reaches_areas_in_proportion_to_time() {
        let curve = LoadCurve::constant(3.0);
        assert_eq!(curve.time_of_area(0.0), 0);
        assert_eq!(curve.time_of_area(1.0), 333_333_333);
        assert_eq!(curve.time_of_area(3.0 * 86_400.0), 86_400 * S, "no drift after a day");
        assert_eq!(curve.value_at(7 * S), 3.0);
    }

    #[test]
    fn a_curve_of_zero_reaches_no_area_and_no_threshold() {
        assert_eq!(LoadCurve::constant(0.0).time_of_area(1.0), Nanos::MAX);
        assert_eq!(LoadCurve::constant(0.0).first_time_at_least(0.5, 0), None);
    }

    #[test]
    fn thresholds_are_found_from_any_time() {
        // 2 until 10 s, then down to 0 at 20 s, then 5.
        let curve = LoadCurve::constant(2.0).with_segment(10.0, 2.0, -0.2).with_segment(20.0, 5.0, 0.0);
        assert_eq!(curve.first_time_at_least(1.5, 3 * S), Some(3 * S));
        assert_eq!(curve.first_time_at_least(1.5, 12 * S), Some(12 * S));
        assert_eq!(curve.first_time_at_least(1.5, 13 * S), Some(20 * S));
        assert_eq!(curve.first_time_at_least(4.5, 0), Some(20 * S));
        assert_eq!(curve.first_time_at_least(5.5, 0), None);
    }
}
