//! The steps of an order on a server: the main connection's by hand, the clients' as a run of the engine.

use std::process::{Command, ExitCode};

use dbdyno_runner::{AdminConnection, Order, RunEnd, Secrets, Sink};
use dbdyno_schema::Plan;
use dbdyno_schema::plan::Target;
use dbdyno_schema::record::{FailedAction, Failure, Record};
use dbdyno_slap::Refused;
use dbdyno_slap::plan::{options, plan};
use dbdyno_slap::report::{Of, Round, Times};
use dbdyno_slap::rounds::{self, PARTS, STATEMENTS, Step};
use dbdyno_slap::settings::Settings;

use super::output::{Output, print};
use crate::exit::FAILED;
use dbdyno_cli::input;

/// Works through an order.
pub(super) struct Conductor {
    program: String,
    settings: Settings,
    target: Target,
    secrets: Secrets,
    main: AdminConnection,
    output: Output,
    /// Of the rows, as they were read last.
    keys: Vec<String>,
    times: Times,
}

impl Conductor {
    /// Looks at every plan, and opens the main connection.
    pub(super) fn open(
        program: &str,
        settings: Settings,
        target: Target,
        password: String,
        output: Output,
    ) -> Result<Self, Refused> {
        let refused = |text: String| Refused { text: format!("{program}: {text}"), code: FAILED };
        let some_key = ["1".to_owned()];
        let of = |clients| plan(&settings, &target, clients, &some_key, workers(&settings));
        for &clients in settings.concurrencies.iter().filter(|&&clients| settings.per_client(clients) > 0) {
            let faults = of(clients).faults();
            if !faults.is_empty() {
                return Err(refused(faults.join("\n")));
            }
        }
        let mut at_home = of(1);
        let secrets = Secrets { password, ..input::secrets(&at_home).map_err(refused)? };
        // The schema may not be there yet.
        at_home.target = target.clone();
        let main = AdminConnection::open(&order(at_home, &secrets));
        let main =
            main.map_err(|failure| refused(format!("Error when connecting to server: {}", words(&failure))))?;
        let program = program.to_owned();
        let mut conductor = Self {
            program,
            settings,
            target,
            secrets,
            main,
            output,
            keys: Vec::new(),
            times: Times::default(),
        };
        if let Some(sql) = conductor.settings.init_command.clone() {
            conductor.send(&sql)?;
        }
        Ok(conductor)
    }

    /// Works through all steps.
    pub(super) fn run(mut self) -> Result<ExitCode, Refused> {
        for step in rounds::steps(&self.settings) {
            self.step(step)?;
        }
        self.main.close();
        Ok(ExitCode::SUCCESS)
    }

    fn step(&mut self, step: Step) -> Result<(), Refused> {
        match step {
            Step::Tell(part) => self.tell(PARTS, part),
            Step::Main(sql) => {
                self.tell(STATEMENTS, &format!("{sql};"));
                self.send(&sql)?;
            }
            Step::MakeSchema(schema) => {
                let sql = format!("CREATE SCHEMA `{schema}`");
                self.tell(STATEMENTS, &format!("{sql};"));
                let made = self.main.query(&sql);
                made.map_err(|failure| {
                    self.refused(&format!("Cannot create schema {schema} : {}", words(&failure)))
                })?;
            }
            Step::Use(schema) => {
                // As the clients tell it.
                self.tell(STATEMENTS, &format!("CREATE SCHEMA `{schema}`;"));
                let used = self.main.query(&format!("USE `{schema}`"));
                used.map_err(|failure| {
                    self.refused(&format!("Cannot select schema '{schema}': {}", words(&failure)))
                })?;
            }
            Step::System(option, command) => system(option, &command),
            Step::Keys(sql) => {
                self.tell(STATEMENTS, &format!("{sql};"));
                let keys = self.main.column(sql);
                self.keys = keys.map_err(|failure| self.refused(&cannot_run(sql, &failure)))?;
            }
            Step::Clients(clients) => self.clients(clients)?,
            Step::Report { engine, clients } => self.report(engine.as_deref(), clients)?,
        }
        Ok(())
    }

    fn tell(&self, verbosity: u32, line: &str) {
        if self.settings.verbose >= verbosity {
            print(&format!("{line}\n"));
        }
    }

    fn send(&mut self, sql: &str) -> Result<(), Refused> {
        let sent = self.main.query(sql);
        sent.map_err(|failure| self.refused(&cannot_run(sql, &failure)))
    }

    fn refused(&self, text: &str) -> Refused {
        Refused { text: format!("{}: {text}", self.program), code: FAILED }
    }

    fn clients(&mut self, clients: u32) -> Result<(), Refused> {
        if self.settings.per_client(clients) == 0 {
            self.times.add(Round::default());
            return Ok(());
        }
        if self.keys.is_empty() && self.settings.queries.iter().any(|query| query.keyed) {
            return Err(self.refused(
                "the queries look for rows by their keys, and the table has no rows; raise \
                 --auto-generate-sql-write-number",
            ));
        }
        let settings = &self.settings;
        let plan = plan(settings, &self.target, clients, &self.keys, workers(settings));
        let mut reading = Reading::default();
        let ended = play(&order(plan, &self.secrets), &mut reading);
        if let Some(failure) = ended.failure {
            return Err(self.failed(&failure));
        }
        if self.settings.verbose >= STATEMENTS {
            for _ in 0..clients {
                print("connected!\n");
                for sql in rounds::of_client(&self.settings, clients, "?") {
                    print(&format!("{sql};\n"));
                }
            }
        }
        self.times.add(reading.0);
        Ok(())
    }

    /// What a client's failure means; the schema does not stay behind because of it.
    fn failed(&mut self, failure: &Failure) -> Refused {
        if self.settings.makes_schema() && !self.settings.no_drop {
            // The failure that is told is the clients'.
            let _ = self.main.query(&format!("DROP SCHEMA IF EXISTS `{}`", self.settings.schema));
        }
        match &failure.server {
            Some(server) if server.action == FailedAction::Connect => {
                let hint = failure.hint.as_ref().map(|hint| format!("\n  {hint}")).unwrap_or_default();
                let text =
                    format!("Error when connecting to server: {} {}{hint}", server.code, server.message);
                self.refused(&text)
            }
            Some(server) => self.refused(&cannot_run(&server.statement, failure)),
            None => self.refused(&failure.text),
        }
    }

    fn report(&mut self, engine: Option<&str>, clients: u32) -> Result<(), Refused> {
        let settings = &self.settings;
        let of = Of {
            engine,
            load_type: &settings.load_type,
            clients,
            per_client: settings.told_per_client(clients),
            latency: settings.latency,
        };
        let times = std::mem::take(&mut self.times);
        let written = self.output.report(&times, &of);
        written.map_err(|error| self.refused(&format!("the csv file cannot be written: {error}")))
    }
}

/// A round's records as they come.
#[derive(Default)]
struct Reading(Round);

impl Sink for Reading {
    fn record(&mut self, record: &Record) -> bool {
        self.0.read(record);
        true
    }
}

fn order(plan: Plan, secrets: &Secrets) -> Order {
    Order { options: options(), ..Order::new(plan, secrets.clone()) }
}

fn play(order: &Order, sink: &mut dyn Sink) -> RunEnd {
    // Nobody stops it but a signal, which ends the process as it ends the originals.
    let (_control, inbox) = dbdyno_runner::channel();
    dbdyno_runner::run(order, inbox, sink)
}

fn cannot_run(sql: &str, failure: &Failure) -> String {
    format!("Cannot run query {sql} ERROR : {}", words(failure))
}

/// The server's words, or ours.
fn words(failure: &Failure) -> &str {
    failure.server.as_ref().map_or(&failure.text, |server| &server.message)
}

/// Runs a command of `--pre-system` or `--post-system`; that it fails is a warning.
pub(super) fn system(option: &str, command: &str) {
    use std::os::unix::process::ExitStatusExt as _;
    match Command::new("/bin/sh").args(["-c", command]).status() {
        Ok(status) if status.success() => {}
        Ok(status) => eprintln!("Warning: Execution of {option} option returned {}.", status.into_raw()),
        Err(error) => eprintln!("Warning: Execution of {option} option failed: {error}."),
    }
}

/// Event loops: the server is often on the same machine, and one loop plays the clients of several CPUs of it.
fn workers(settings: &Settings) -> u32 {
    if settings.workers > 0 {
        return settings.workers;
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    cpus.div_ceil(4).clamp(1, 64)
}
