//! The load generators of a fleet as one.

use dbdyno_schema::record::Generator;

/// Keeps the worst of the load generators: one that is saturated limits the load of all.
pub(super) fn add_generator(sum: &mut Generator, part: &Generator) {
    let Generator { cpu, lag_us_max, lag_us_p99, steal, run_queue_wait_us, client_delay_us_p99 } = part;
    sum.cpu = sum.cpu.max(*cpu);
    sum.lag_us_max = sum.lag_us_max.max(*lag_us_max);
    sum.lag_us_p99 = sum.lag_us_p99.max(*lag_us_p99);
    sum.steal = sum.steal.max(*steal);
    sum.run_queue_wait_us += run_queue_wait_us;
    sum.client_delay_us_p99 = sum.client_delay_us_p99.max(*client_delay_us_p99);
}
