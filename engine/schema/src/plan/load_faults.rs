//! What can be wrong with a load.

use super::{Load, Shape, ThinkTime, limits};

impl Load {
    /// Everything that is wrong with the load, each as one sentence with key, value and limit.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = self.shape.faults(self.connections);
        if let Some(ThinkTime::Constant { us } | ThinkTime::Exponential { mean_us: us }) = self.think_time {
            if !(1..=limits::DURATION_US).contains(&us) {
                let most = limits::DURATION_US;
                faults.push(format!(
                    "load.think_time is {us} us; it must be between 1 and {most}, or left out"
                ));
            }
            if self.shape.is_open() {
                faults.push("load.think_time has no meaning in an open loop; leave it out".into());
            }
        }
        if let Some(limit) = self.queue_limit.filter(|_| !self.shape.is_open()) {
            faults.push(format!(
                "load.queue_limit is {limit}, but in a closed loop nothing waits; leave it out"
            ));
        }
        faults
    }
}

impl Shape {
    fn faults(&self, connections: u32) -> Vec<String> {
        match self {
            Shape::Closed => Vec::new(),
            Shape::ClosedRamp { from, to, over_us } => {
                let mut faults: Vec<_> = length("over_us", *over_us).into_iter().collect();
                faults.extend(busy("from", *from, connections));
                faults.extend(busy("to", *to, connections));
                faults.extend(some([*from, *to].iter().all(|&level| level == 0)));
                faults
            }
            Shape::ClosedSteps { steps } => {
                let mut faults: Vec<_> = number(steps.len()).into_iter().collect();
                faults.extend(some(steps.iter().all(|step| step.connections == 0)));
                for (at, step) in steps.iter().enumerate() {
                    faults.extend(busy(&format!("steps[{at}].connections"), step.connections, connections));
                    faults.extend(length(&format!("steps[{at}].for_us"), step.for_us));
                }
                faults
            }
            Shape::Constant { rate_per_s } | Shape::Poisson { rate_per_s } => {
                rate("rate_per_s", *rate_per_s).into_iter().chain(some(*rate_per_s == 0.0)).collect()
            }
            Shape::Ramp { from_per_s, to_per_s, over_us, .. } => {
                let mut faults: Vec<_> = length("over_us", *over_us).into_iter().collect();
                faults.extend(rate("from_per_s", *from_per_s));
                faults.extend(rate("to_per_s", *to_per_s));
                faults.extend(some([from_per_s, to_per_s].iter().all(|&&level| level == 0.0)));
                faults
            }
            Shape::Steps { steps, .. } => {
                let mut faults: Vec<_> = number(steps.len()).into_iter().collect();
                faults.extend(some(steps.iter().all(|step| step.rate_per_s == 0.0)));
                for (at, step) in steps.iter().enumerate() {
                    faults.extend(rate(&format!("steps[{at}].rate_per_s"), step.rate_per_s));
                    faults.extend(length(&format!("steps[{at}].for_us"), step.for_us));
                }
                faults
            }
        }
    }
}

fn rate(key: &str, value: f64) -> Option<String> {
    let most = limits::RATE_PER_S;
    // Written so that a value that is no number is refused too.
    let fits = value >= 0.0 && value <= most;
    (!fits).then(|| format!("load.shape.{key} is {value}; it must be above 0 and at most {most}"))
}

fn some(nothing: bool) -> Option<String> {
    nothing.then(|| "load.shape asks for no event at all; a rate or a number must be above 0".into())
}

fn busy(key: &str, value: u32, connections: u32) -> Option<String> {
    (value > connections)
        .then(|| format!("load.shape.{key} is {value}; load.connections, {connections}, is the most"))
}

fn length(key: &str, value: u64) -> Option<String> {
    let most = limits::DURATION_US;
    (!(1..=most).contains(&value))
        .then(|| format!("load.shape.{key} is {value}; it must be between 1 and {most}"))
}

fn number(steps: usize) -> Option<String> {
    (!(1..=limits::STEPS).contains(&steps)).then(|| {
        format!("load.shape.steps has {steps} entries; it must have between 1 and {}", limits::STEPS)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ConnectionStep, Gaps, RateStep};
    use super::*;

    fn faults(shape: Shape) -> Vec<String> {
        Load { connections: 10, shape, think_time: None, queue_limit: None, reconnect_every: 0 }.faults()
    }

    #[test]
    fn sound_shapes_have_no_faults() {
        let steps = vec![RateStep { rate_per_s: 0.0, for_us: 1 }, RateStep { rate_per_s: 5.0, for_us: 1 }];
        for shape in [
            Shape::Closed,
            Shape::ClosedRamp { from: 0, to: 10, over_us: 1 },
            Shape::ClosedSteps { steps: vec![ConnectionStep { connections: 10, for_us: 1 }] },
            Shape::Poisson { rate_per_s: 1e7 },
            Shape::Ramp { from_per_s: 0.0, to_per_s: 1.0, over_us: 1, gaps: Gaps::Constant },
            Shape::Steps { steps, gaps: Gaps::Poisson },
        ] {
            assert_eq!(faults(shape.clone()), [""; 0], "{shape:?}");
        }
    }

    #[test]
    fn every_fault_names_key_value_and_limit() {
        let told = |shape, part: &str| {
            let found = faults(shape);
            assert!(found.iter().any(|fault| fault.contains(part)), "{found:?} lacks {part}");
        };
        told(Shape::Constant { rate_per_s: -1.0 }, "load.shape.rate_per_s is -1;");
        told(Shape::Constant { rate_per_s: f64::NAN }, "load.shape.rate_per_s is NaN;");
        told(Shape::Poisson { rate_per_s: 0.0 }, "no event at all");
        told(Shape::ClosedRamp { from: 1, to: 11, over_us: 1 }, "load.shape.to is 11; load.connections, 10,");
        told(Shape::ClosedRamp { from: 1, to: 2, over_us: 0 }, "load.shape.over_us is 0;");
        told(Shape::ClosedSteps { steps: vec![] }, "load.shape.steps has 0 entries");
        let step = RateStep { rate_per_s: 2e7, for_us: 0 };
        let shape = Shape::Steps { steps: vec![step], gaps: Gaps::Poisson };
        told(shape.clone(), "load.shape.steps[0].rate_per_s is 20000000;");
        told(shape, "load.shape.steps[0].for_us is 0;");
    }

    #[test]
    fn pauses_belong_to_closed_loops_and_queues_to_open_ones() {
        let mut load = Load {
            connections: 1,
            shape: Shape::Poisson { rate_per_s: 1.0 },
            think_time: Some(ThinkTime::Constant { us: 0 }),
            queue_limit: Some(0),
            reconnect_every: 0,
        };
        assert_eq!(load.faults().len(), 2, "{:?}", load.faults());
        load.shape = Shape::Closed;
        load.think_time = Some(ThinkTime::Exponential { mean_us: 5 });
        assert_eq!(
            load.faults(),
            ["load.queue_limit is 0, but in a closed loop nothing waits; leave it out"]
        );
    }
}
