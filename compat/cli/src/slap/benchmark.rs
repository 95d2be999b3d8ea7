//! Executes the steps of a benchmark: statements on the main connection, and each round of clients as one run of the
//! engine.

use std::process::{Command, ExitCode};

use dbdyno_runner::{AdminConnection, RunSpec, Secrets, Sink};
use dbdyno_schema::Plan;
use dbdyno_schema::plan::Target;
use dbdyno_schema::record::{FailedAction, Failure, Record};
use dbdyno_slap::UsageError;
use dbdyno_slap::plan::{options, plan};
use dbdyno_slap::report::{Labels, Round, Times};
use dbdyno_slap::rounds::{self, Step, VERBOSE_PHASES, VERBOSE_STATEMENTS};
use dbdyno_slap::settings::Settings;

use super::output::{Output, print};
use crate::system::{FAILED, event_loops};
use dbdyno_cli::input;

pub(super) struct Benchmark {
    program: String,
    settings: Settings,
    target: Target,
    secrets: Secrets,
    main_connection: AdminConnection,
    output: Output,
    /// The keys of the table's rows, as last read from the server.
    keys: Vec<String>,
    times: Times,
}

impl Benchmark {
    /// Validates the plans of all rounds and opens the main connection.
    pub(super) fn open(
        program: &str,
        settings: Settings,
        target: Target,
        password: String,
        output: Output,
    ) -> Result<Self, UsageError> {
        let usage_error = |text: String| UsageError { text: format!("{program}: {text}"), code: FAILED };
        let sample_keys = ["1".to_owned()];
        let plan_of =
            |clients| plan(&settings, &target, clients, &sample_keys, event_loops(settings.workers));
        for &clients in
            settings.concurrencies.iter().filter(|&&clients| settings.queries_per_client(clients) > 0)
        {
            let problems = plan_of(clients).problems();
            if !problems.is_empty() {
                return Err(usage_error(problems.join("\n")));
            }
        }
        let mut main_plan = plan_of(1);
        let secrets = Secrets { password, ..input::read_secrets(&main_plan).map_err(usage_error)? };
        // The main connection selects no schema, because the schema may not exist yet.
        main_plan.target = target.clone();
        let main_connection = AdminConnection::open(&run_spec(main_plan, &secrets));
        let main_connection = main_connection.map_err(|failure| {
            usage_error(format!("Error when connecting to server: {}", message(&failure)))
        })?;
        let program = program.to_owned();
        let mut benchmark = Self {
            program,
            settings,
            target,
            secrets,
            main_connection,
            output,
            keys: Vec::new(),
            times: Times::default(),
        };
        if let Some(sql) = benchmark.settings.init_command.clone() {
            benchmark.execute(&sql)?;
        }
        Ok(benchmark)
    }

    pub(super) fn run(mut self) -> Result<ExitCode, UsageError> {
        for step in rounds::steps(&self.settings) {
            self.execute_step(step)?;
        }
        self.main_connection.close();
        Ok(ExitCode::SUCCESS)
    }

    fn execute_step(&mut self, step: Step) -> Result<(), UsageError> {
        match step {
            Step::Announce(phase) => self.announce(VERBOSE_PHASES, phase),
            Step::Statement(sql) => {
                self.announce(VERBOSE_STATEMENTS, &format!("{sql};"));
                self.execute(&sql)?;
            }
            Step::CreateSchema(schema) => {
                let sql = format!("CREATE SCHEMA `{schema}`");
                self.announce(VERBOSE_STATEMENTS, &format!("{sql};"));
                let result = self.main_connection.query(&sql);
                result.map_err(|failure| {
                    self.error(&format!("Cannot create schema {schema} : {}", message(&failure)))
                })?;
            }
            Step::Use(schema) => {
                // mysqlslap prints CREATE SCHEMA here too.
                self.announce(VERBOSE_STATEMENTS, &format!("CREATE SCHEMA `{schema}`;"));
                let result = self.main_connection.query(&format!("USE `{schema}`"));
                result.map_err(|failure| {
                    self.error(&format!("Cannot select schema '{schema}': {}", message(&failure)))
                })?;
            }
            Step::System(option, command) => run_shell_command(option, &command),
            Step::Keys(sql) => {
                self.announce(VERBOSE_STATEMENTS, &format!("{sql};"));
                let keys = self.main_connection.column(sql);
                self.keys = keys.map_err(|failure| self.error(&query_error(sql, &failure)))?;
            }
            Step::Clients(clients) => self.run_clients(clients)?,
            Step::Report { engine, clients } => self.print_report(engine.as_deref(), clients)?,
        }
        Ok(())
    }

    fn announce(&self, verbosity: u32, line: &str) {
        if self.settings.verbose >= verbosity {
            print(&format!("{line}\n"));
        }
    }

    fn execute(&mut self, sql: &str) -> Result<(), UsageError> {
        let result = self.main_connection.query(sql);
        result.map_err(|failure| self.error(&query_error(sql, &failure)))
    }

    fn error(&self, text: &str) -> UsageError {
        UsageError { text: format!("{}: {text}", self.program), code: FAILED }
    }

    fn run_clients(&mut self, clients: u32) -> Result<(), UsageError> {
        if self.settings.queries_per_client(clients) == 0 {
            self.times.add(Round::default());
            return Ok(());
        }
        if self.keys.is_empty() && self.settings.queries.iter().any(|query| query.needs_key) {
            return Err(self.error(
                "the queries select rows by key, but the table has no rows; raise --auto-generate-sql-write-number",
            ));
        }
        let settings = &self.settings;
        let plan = plan(settings, &self.target, clients, &self.keys, event_loops(settings.workers));
        let mut round = RoundSink::default();
        // Nobody sends a stop command: as with mysqlslap, a signal ends the process.
        let (_control, inbox) = dbdyno_runner::channel();
        let end = dbdyno_runner::run(&run_spec(plan, &self.secrets), inbox, &mut round);
        if let Some(failure) = end.failure {
            return Err(self.clean_up(&failure));
        }
        if self.settings.verbose >= VERBOSE_STATEMENTS {
            for _ in 0..clients {
                print("connected!\n");
                for sql in rounds::client_statements(&self.settings, clients, "?") {
                    print(&format!("{sql};\n"));
                }
            }
        }
        self.times.add(round.0);
        Ok(())
    }

    /// Drops the schema after a client's failure, and returns the failure as an error.
    fn clean_up(&mut self, failure: &Failure) -> UsageError {
        if self.settings.creates_schema() && !self.settings.no_drop {
            // Ignore an error of this cleanup: it would hide the clients' failure.
            let _ = self.main_connection.query(&format!("DROP SCHEMA IF EXISTS `{}`", self.settings.schema));
        }
        match &failure.server {
            Some(server) if server.action == FailedAction::Connect => {
                let fix = failure.fix.as_ref().map(|fix| format!("\n  {fix}")).unwrap_or_default();
                let text =
                    format!("Error when connecting to server: {} {}{fix}", server.code, server.message);
                self.error(&text)
            }
            Some(server) => self.error(&query_error(&server.statement, failure)),
            None => self.error(&failure.text),
        }
    }

    fn print_report(&mut self, engine: Option<&str>, clients: u32) -> Result<(), UsageError> {
        let settings = &self.settings;
        let times = std::mem::take(&mut self.times);
        let result = self.output.report(&times, &Labels::new(settings, engine, clients));
        result.map_err(|error| self.error(&format!("cannot write the csv file: {error}")))
    }
}

#[derive(Default)]
struct RoundSink(Round);

impl Sink for RoundSink {
    fn record(&mut self, record: &Record) -> bool {
        self.0.add_record(record);
        true
    }
}

fn run_spec(plan: Plan, secrets: &Secrets) -> RunSpec {
    RunSpec { options: options(), ..RunSpec::new(plan, secrets.clone()) }
}

fn query_error(sql: &str, failure: &Failure) -> String {
    format!("Cannot run query {sql} ERROR : {}", message(failure))
}

/// The server's message, or the engine's message if the server sent none.
fn message(failure: &Failure) -> &str {
    failure.server.as_ref().map_or(&failure.text, |server| &server.message)
}

/// Runs a shell command of `--pre-system` or `--post-system`. If it fails, prints a warning.
pub(super) fn run_shell_command(option: &str, command: &str) {
    use std::os::unix::process::ExitStatusExt as _;
    match Command::new("/bin/sh").args(["-c", command]).status() {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("Warning: Execution of {option} option returned {}.", status.into_raw()),
        Err(error) => eprintln!("Warning: Execution of {option} option failed: {error}."),
    }
}
