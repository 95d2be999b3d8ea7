//! What is wrong with a plan, in the words of the options that it was made from.

/// Keys of a plan, and the options behind them; a longer key stands before what it begins with.
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

/// The same sentence for whom has given options. PostgreSQL's files are libpq's.
pub fn of_options(fault: &str, postgresql: bool) -> String {
    let libpq = [
        ("target.tls.ca", "PGSSLROOTCERT"),
        ("target.tls.certificate", "PGSSLCERT"),
        ("target.tls.key", "PGSSLKEY"),
    ];
    let before = if postgresql { &libpq[..] } else { &[] };
    let known = before.iter().chain(&OPTIONS);
    known.fold(fault.to_owned(), |fault, (key, option)| fault.replace(key, option))
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::plan::{Distribution, WorkloadName};

    use super::*;
    use crate::registry::Registry;
    use crate::settings::Settings;
    use crate::{Compat, oltp, plan};

    #[test]
    fn every_fault_names_an_option() {
        let given = [
            ("threads", "100000"),
            ("tables", "0"),
            ("table_size", "0"),
            ("range_size", "0"),
            ("rand-type", "special"),
            ("rand-spec-iter", "2000"),
            ("db-driver", "mysql"),
        ];
        let mut registry = Registry::new(Compat::V10);
        let workload = WorkloadName::OltpReadWrite;
        oltp::declared(workload, Compat::V10).into_iter().for_each(|option| registry.declare(option));
        given.iter().for_each(|(name, value)| registry.set(name, Some(value)).unwrap());
        let settings = Settings::read(&registry, Compat::V10).unwrap();
        let mut plan = plan::plan(plan::Played::Native(workload), &registry, &settings, 1, 1).unwrap();
        let mut told: Vec<_> = plan.faults().iter().map(|fault| of_options(fault, false)).collect();
        plan.workload.keys = Distribution::Special { iterations: 1, percent: 101, hot_percent: 0 };
        told.extend(
            plan.faults().iter().map(|fault| of_options(fault, false)).filter(|told| told.contains("pct")),
        );
        assert_eq!(told.len(), 6, "{told:?}");
        assert!(told.iter().all(|told| told.starts_with("--") && !told.contains("workload")), "{told:?}");
        assert!(
            told.contains(&"--rand-spec-pct is 101 and --rand-spec-res 0; 100 is the most".into()),
            "{told:?}"
        );
    }

    #[test]
    fn files_are_named_as_they_are_given() {
        let fault = "target.tls.ca is missing";
        assert_eq!(of_options(fault, false), "--mysql-ssl-ca is missing");
        assert_eq!(of_options(fault, true), "PGSSLROOTCERT is missing");
    }
}
