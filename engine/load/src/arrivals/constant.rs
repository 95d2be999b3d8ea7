//! Arrivals with equal gaps.

use super::series::Arrivals;
use crate::Nanos;
use crate::load_curve::LoadCurve;

/// Event n of the run is due when the area under the rate reaches n. This engine has every `engines`-th event.
#[derive(Clone, Debug)]
pub struct ConstantArrivals {
    rate: LoadCurve,
    next_event: u64,
    engines: u64,
}

impl ConstantArrivals {
    /// The arrivals of engine `engine` of `engines`, which together have `rate` events per second.
    pub fn new(rate: LoadCurve, engine: u64, engines: u64) -> Self {
        Self { rate, next_event: engine, engines }
    }
}

impl Arrivals for ConstantArrivals {
    fn next_due(&mut self) -> Nanos {
        // Computed from the event's number, because a sum of rounded gaps would drift over hours of load.
        let due = self.rate.time_of_area(self.next_event as f64);
        self.next_event += self.engines;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_engines_interleave_into_even_gaps() {
        let mut first = ConstantArrivals::new(LoadCurve::constant(1000.0), 0, 2);
        let mut second = ConstantArrivals::new(LoadCurve::constant(1000.0), 1, 2);
        let due: Vec<_> = (0..2).flat_map(|_| [first.next_due(), second.next_due()]).collect();
        assert_eq!(due, [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn no_drift_after_a_day() {
        let mut arrivals = ConstantArrivals::new(LoadCurve::constant(3.0), 3 * 86_400, 1);
        assert_eq!(arrivals.next_due(), 86_400_000_000_000);
    }

    #[test]
    fn any_number_of_engines_has_the_same_arrivals_on_a_ramp() {
        let rate = || LoadCurve::ramp(100.0, 900.0, 1_000_000_000, 2_000_000_000);
        let due = |engines: u64| {
            let mut all: Vec<_> = (0..engines)
                .flat_map(|index| {
                    let mut arrivals = ConstantArrivals::new(rate(), index, engines);
                    (0..420 / engines).map(move |_| arrivals.next_due())
                })
                .collect();
            all.sort_unstable();
            all
        };
        let alone = due(1);
        for engines in [2, 3, 7] {
            assert_eq!(due(engines), alone, "{engines} engines");
        }
    }
}
