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
use dbdyno_slap::rounds::{self, PARTS, STATEMENTS, Step};
use dbdyno_slap::settings::Settings;

use super::output::{Output, print};
use crate::system::{FAILED, event_loops};
use dbdyno_cli::input;

pub(super) struct Benchmark {
    program: String,
    settings: Settings,
    target: Target,
    secrets: Secrets,
    main: AdminConnection,
    output: Output,
    /// The rows' keys, as last read from the server.
    keys: Vec<String>,
    times: Times,
}

impl Benchmark {
    /// Checks every plan and opens the main connection.
    pub(super) fn open(
        program: &str,
        settings: Settings,
        target: Target,
        password: String,
        output: Output,
    ) -> Result<Self, UsageError> {
        let failed = |text: String| UsageError { text: format!("{program}: {text}"), code: FAILED };
        let sample_keys = ["1".to_owned()];
        let plan_of =
            |clients| plan(&settings, &target, clients, &sample_keys, event_loops(settings.workers));
        for &clients in settings.concurrencies.iter().filter(|&&clients| settings.per_client(clients) > 0) {
            let problems = plan_of(clients).problems();
            if !problems.is_empty() {
                return Err(failed(problems.join("\n")));
            }
        }
        let mut main_plan = plan_of(1);
        let secrets = Secrets { password, ..input::secrets(&main_plan).map_err(failed)? };
        // The main connection selects no schema, because the schema may not exist yet.
        main_plan.target = target.clone();
        let main = AdminConnection::open(&spec(main_plan, &secrets));
        let main = main
            .map_err(|failure| failed(format!("Error when connecting to server: {}", message(&failure))))?;
        let program = program.to_owned();
        let mut benchmark = Self {
            program,
            settings,
            target,
            secrets,
            main,
            output,
            keys: Vec::new(),
            times: Times::default(),
        };
        if let Some(sql) = benchmark.settings.init_command.clone() {
            benchmark.send(&sql)?;
        }
        Ok(benchmark)
    }

    pub(super) fn run(mut self) -> Result<ExitCode, UsageError> {
        for step in rounds::steps(&self.settings) {
            self.step(step)?;
        }
        self.main.close();
        Ok(ExitCode::SUCCESS)
    }

    fn step(&mut self, step: Step) -> Result<(), UsageError> {
        match step {
            Step::Announce(part) => self.announce(PARTS, part),
            Step::Statement(sql) => {
                self.announce(STATEMENTS, &format!("{sql};"));
                self.send(&sql)?;
            }
            Step::CreateSchema(schema) => {
                let sql = format!("CREATE SCHEMA `{schema}`");
                self.announce(STATEMENTS, &format!("{sql};"));
                let result = self.main.query(&sql);
                result.map_err(|failure| {
                    self.error(&format!("Cannot create schema {schema} : {}", message(&failure)))
                })?;
            }
            Step::Use(schema) => {
                // mysqlslap prints CREATE SCHEMA here too.
                self.announce(STATEMENTS, &format!("CREATE SCHEMA `{schema}`;"));
                let result = self.main.query(&format!("USE `{schema}`"));
                result.map_err(|failure| {
                    self.error(&format!("Cannot select schema '{schema}': {}", message(&failure)))
                })?;
            }
            Step::System(option, command) => system(option, &command),
            Step::Keys(sql) => {
                self.announce(STATEMENTS, &format!("{sql};"));
                let keys = self.main.column(sql);
                self.keys = keys.map_err(|failure| self.error(&cannot_run(sql, &failure)))?;
            }
            Step::Clients(clients) => self.clients(clients)?,
            Step::Report { engine, clients } => self.report(engine.as_deref(), clients)?,
        }
        Ok(())
    }

    fn announce(&self, level: u32, line: &str) {
        if self.settings.verbose >= level {
            print(&format!("{line}\n"));
        }
    }

    fn send(&mut self, sql: &str) -> Result<(), UsageError> {
        let result = self.main.query(sql);
        result.map_err(|failure| self.error(&cannot_run(sql, &failure)))
    }

    fn error(&self, text: &str) -> UsageError {
        UsageError { text: format!("{}: {text}", self.program), code: FAILED }
    }

    fn clients(&mut self, clients: u32) -> Result<(), UsageError> {
        if self.settings.per_client(clients) == 0 {
            self.times.add(Round::default());
            return Ok(());
        }
        if self.keys.is_empty() && self.settings.queries.iter().any(|query| query.keyed) {
            return Err(self.error(
                "the queries select rows by key, but the table has no rows; raise --auto-generate-sql-write-number",
            ));
        }
        let settings = &self.settings;
        let plan = plan(settings, &self.target, clients, &self.keys, event_loops(settings.workers));
        let mut round = RoundSink::default();
        // Nothing sends a stop command: a signal ends the process, as it ends mysqlslap.
        let (_control, inbox) = dbdyno_runner::channel();
        let ended = dbdyno_runner::run(&spec(plan, &self.secrets), inbox, &mut round);
        if let Some(failure) = ended.failure {
            return Err(self.failed(&failure));
        }
        if self.settings.verbose >= STATEMENTS {
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

    /// Drops the schema and returns a client's failure as an error.
    fn failed(&mut self, failure: &Failure) -> UsageError {
        if self.settings.creates_schema() && !self.settings.no_drop {
            // Ignore an error of this cleanup: it would hide the clients' failure.
            let _ = self.main.query(&format!("DROP SCHEMA IF EXISTS `{}`", self.settings.schema));
        }
        match &failure.server {
            Some(server) if server.action == FailedAction::Connect => {
                let fix = failure.fix.as_ref().map(|fix| format!("\n  {fix}")).unwrap_or_default();
                let text =
                    format!("Error when connecting to server: {} {}{fix}", server.code, server.message);
                self.error(&text)
            }
            Some(server) => self.error(&cannot_run(&server.statement, failure)),
            None => self.error(&failure.text),
        }
    }

    fn report(&mut self, engine: Option<&str>, clients: u32) -> Result<(), UsageError> {
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
        self.0.read(record);
        true
    }
}

fn spec(plan: Plan, secrets: &Secrets) -> RunSpec {
    RunSpec { options: options(), ..RunSpec::new(plan, secrets.clone()) }
}

fn cannot_run(sql: &str, failure: &Failure) -> String {
    format!("Cannot run query {sql} ERROR : {}", message(failure))
}

/// The server's message, or the engine's message if the server sent none.
fn message(failure: &Failure) -> &str {
    failure.server.as_ref().map_or(&failure.text, |server| &server.message)
}

/// Runs a shell command of `--pre-system` or `--post-system`. If it fails, prints a warning.
pub(super) fn system(option: &str, command: &str) {
    use std::os::unix::process::ExitStatusExt as _;
    match Command::new("/bin/sh").args(["-c", command]).status() {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("Warning: Execution of {option} option returned {}.", status.into_raw()),
        Err(error) => eprintln!("Warning: Execution of {option} option failed: {error}."),
    }
}
