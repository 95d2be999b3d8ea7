//! Errors in a plan, in terms of the options that produced it.

/// Parts of a plan's error messages, above all keys, and their replacement: the option that sets the key. A longer part
/// precedes its prefixes.
const OPTIONS: [(&str, &str); 17] = [
    ("the plan is not usable:\n  ", ""),
    ("workload.keys.iterations", "--rand-spec-iter"),
    ("workload.keys.percent", "--rand-spec-pct"),
    (" and hot_percent ", " and --rand-spec-res "),
    ("workload.keys.h", "--rand-pareto-h"),
    ("workload.keys.exponent", "--rand-zipfian-exp"),
    ("workload.options.", "--"),
    ("load.connections", "--threads"),
    ("load.reconnect_every", "--reconnect"),
    ("client.workers", "--workers"),
    ("report.marks_us", "--report-checkpoints"),
    ("retry.codes", "the list of errors to ignore"),
    ("target.endpoints", "the list of servers"),
    ("target.tls.ca", "--mysql-ssl-ca"),
    ("target.tls.certificate", "--mysql-ssl-cert"),
    ("target.tls.key", "--mysql-ssl-key"),
    ("target.tls", "--mysql-ssl"),
];

/// Replaces the plan's keys in a message by option names. For PostgreSQL's certificates, the names are those of libpq's
/// environment variables.
pub fn replace_plan_keys(message: &str, postgresql: bool) -> String {
    let libpq = [
        ("target.tls.ca", "PGSSLROOTCERT"),
        ("target.tls.certificate", "PGSSLCERT"),
        ("target.tls.key", "PGSSLKEY"),
    ];
    let overrides = if postgresql { &libpq[..] } else { &[] };
    let known = overrides.iter().chain(&OPTIONS);
    known.fold(message.to_owned(), |message, (key, option)| message.replace(key, option))
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::plan::{Distribution, WorkloadName};

    use super::*;
    use crate::registry::Registry;
    use crate::settings::Settings;
    use crate::{Compat, oltp, plan};

    #[test]
    fn every_problem_names_an_option() {
        let options = [
            ("threads", "100000"),
            ("tables", "0"),
            ("table_size", "0"),
            ("range_size", "0"),
            ("rand-type", "special"),
            ("rand-spec-iter", "2000"),
            ("db-driver", "mysql"),
        ];
        let workload = WorkloadName::OltpReadWrite;
        let mut registry = Registry::new(Compat::V1_0);
        oltp::option_definitions(workload, Compat::V1_0)
            .into_iter()
            .for_each(|option| registry.declare(option));
        options.iter().for_each(|(name, value)| registry.set(name, Some(value)).unwrap());
        let settings = Settings::read(&registry, Compat::V1_0).unwrap();
        let mut plan = plan::plan(plan::TestKind::Native(workload), &registry, &settings, 1, 1).unwrap();
        let mut problems: Vec<_> =
            plan.problems().iter().map(|problem| replace_plan_keys(problem, false)).collect();
        plan.workload.keys = Distribution::Special { iterations: 1, percent: 101, hot_percent: 0 };
        problems.extend(
            plan.problems()
                .iter()
                .map(|problem| replace_plan_keys(problem, false))
                .filter(|problem| problem.contains("pct")),
        );
        assert_eq!(problems.len(), 6, "{problems:?}");
        assert!(
            problems.iter().all(|problem| problem.starts_with("--") && !problem.contains("workload")),
            "{problems:?}"
        );
        assert!(
            problems.contains(&"--rand-spec-pct is 101 and --rand-spec-res 0; the maximum is 100".into()),
            "{problems:?}"
        );
    }

    #[test]
    fn tls_files_are_named_by_option_or_variable() {
        let problem = "target.tls.ca is missing";
        assert_eq!(replace_plan_keys(problem, false), "--mysql-ssl-ca is missing");
        assert_eq!(replace_plan_keys(problem, true), "PGSSLROOTCERT is missing");
    }
}
