//! Reads the plan from standard input, and the passwords and files to which the plan refers.

use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_runner::{Control, RunSpec, Secrets};
use dbdyno_schema::Plan;
use dbdyno_schema::plan::{Command, Secret, Target, Tls, TlsMode};
use dbdyno_schema::record::EndReason;
use dbdyno_wire::mysql::PublicKey;
use dbdyno_wire::tls::{Files, TlsClient};
use dbdyno_workload::Contents;
use dbdyno_workload::generated::GeneratedTables;
use dbdyno_workload::replay::{self, Recording};
use dbdyno_workload::sql::columns;

use crate::exit;

/// Reads the plan from the first line of standard input. An error lists all problems of the plan.
pub fn read_plan() -> Result<Plan, String> {
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| format!("cannot read the plan from standard input: {error}"))?;
    if line.trim().is_empty() {
        return Err(
            "no plan on standard input; write it in JSON as the first line (format: `dbdyno-engine schema plan`)".into()
        );
    }
    let plan: Plan =
        serde_json::from_str(&line).map_err(|error| format!("the plan is not usable: {error}"))?;
    reject_problems(&plan.problems())?;
    reject_problems(&GeneratedTables::from_plan(&plan).problems()).map(|()| plan)
}

fn reject_problems(problems: &[String]) -> Result<(), String> {
    match problems {
        [] => Ok(()),
        problems => Err(format!("the plan is not usable:\n  {}", problems.join("\n  "))),
    }
}

/// Reads the password, keys and files to which the plan refers. An error lists all problems.
pub fn read_secrets(plan: &Plan) -> Result<Secrets, String> {
    let mut problems = Vec::new();
    let mut secrets = Secrets { contents: read_files(plan, &mut problems), ..Secrets::default() };
    let target = match &plan.target {
        Target::Mysql { password, tls, server_public_key, .. } => {
            Some((password, tls, server_public_key.as_deref()))
        }
        Target::Postgresql { password, tls, .. } => Some((password, tls, None)),
        Target::Null { .. } => None,
    };
    if let Some((secret, tls, server_public_key)) = target {
        match read_password(secret.as_ref()) {
            Ok(password) => secrets.password = password,
            Err(problem) => problems.push(problem),
        }
        secrets.tls = read_tls(tls, &mut problems);
        secrets.server_public_key = read_public_key(server_public_key, &mut problems);
    }
    reject_problems(&problems).map(|()| secrets)
}

/// Reads the recorded statements that the workload replays, if it does.
pub fn read_recording(plan: &Plan) -> Result<Option<Arc<Recording>>, String> {
    let custom = plan.workload.custom_sql();
    let Some((custom, replay)) = custom.and_then(|custom| Some((custom, custom.replay.as_ref()?))) else {
        return Ok(None);
    };
    let file = std::fs::File::open(&replay.file).map_err(|error| error.to_string());
    file.and_then(|file| {
        replay::read(replay, custom.order, plan.target.quoting(), std::io::BufReader::new(file))
    })
    .map(|recording| Some(Arc::new(recording)))
    .map_err(|error| format!("workload.sql.replay: {}: {error}", replay.file))
}

/// The content of the files that the workload reads.
fn read_files(plan: &Plan, problems: &mut Vec<String>) -> Contents {
    let Some(custom) = plan.workload.custom_sql() else { return Contents::default() };
    let recording = read_recording(plan).map_err(|problem| problems.push(problem)).ok().flatten();
    let text = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let columns = columns::read(custom, text).map_err(|errors| problems.extend(errors)).unwrap_or_default();
    Contents { columns, recording }
}

/// The target's password; empty if the plan does not refer to one.
fn read_password(secret: Option<&Secret>) -> Result<String, String> {
    match secret {
        None => Ok(String::new()),
        Some(Secret::Env(name)) => std::env::var(name)
            .map_err(|_| format!("target.password: the environment variable {name} is not set")),
        Some(Secret::File(path)) => std::fs::read_to_string(path)
            .map(|text| {
                text.strip_suffix('\n').map_or(text.clone(), |line| line.trim_end_matches('\r').to_owned())
            })
            .map_err(|error| format!("target.password: {path}: {error}")),
    }
}

/// The TLS client that the plan requests; `None` if TLS is disabled or a file is invalid.
fn read_tls(tls: &Tls, problems: &mut Vec<String>) -> Option<TlsClient> {
    if tls.mode == TlsMode::Disabled {
        return None;
    }
    let before = problems.len();
    let mut read = |key, path: Option<&str>| path.and_then(|path| read_file(key, path, problems));
    let ca = read("target.tls.ca", tls.ca.as_deref());
    let certificate = read("target.tls.certificate", tls.certificate.as_deref());
    let key = read("target.tls.key", tls.key.as_deref());
    if problems.len() > before {
        return None;
    }
    let files = Files { ca: ca.as_deref(), certificate: certificate.as_deref(), key: key.as_deref() };
    TlsClient::new(tls.mode, files).map_err(|errors| problems.extend(errors)).ok()
}

fn read_public_key(path: Option<&str>, problems: &mut Vec<String>) -> Option<PublicKey> {
    let path = path?;
    let pem = read_file("target.server_public_key", path, problems)?;
    let key = PublicKey::from_pem(&pem);
    key.map_err(|_| {
        problems.push(format!(
            "target.server_public_key: {path} contains no public RSA key in PEM format (BEGIN PUBLIC KEY); copy \
             public_key.pem from the data directory of the server"
        ));
    })
    .ok()
}

/// The content of the file at `path`, to which the plan's key `key` refers.
fn read_file(key: &str, path: &str, problems: &mut Vec<String>) -> Option<Vec<u8>> {
    std::fs::read(path).map_err(|error| problems.push(format!("{key}: {path}: {error}"))).ok()
}

/// How long a command that ends early may take to cancel its statements on the server.
pub(crate) const CANCEL_MAX: Duration = Duration::from_millis(1500);
/// How long a command may take to end after the end of standard input.
const ABANDONED_MAX: Duration = Duration::from_secs(2);
/// How much of that time its statements may take to end by themselves.
const STATEMENTS_MAX: Duration = Duration::from_millis(300);

/// Starts a thread that executes the commands that follow the plan. The end of standard input stops the command.
pub fn spawn_command_reader(program: &'static str, control: Control, spec: RunSpec) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(Command::Start { at_unix_us }) => control.start(at_unix_us),
                Ok(Command::Resume { slice, for_us }) => control.resume(slice, for_us),
                Ok(Command::Finish {}) => control.finish(),
                Err(error) => eprintln!("{program}: invalid command on standard input: {error}"),
            }
        }
        control.stop(EndReason::Abandoned);
        // The program that started the command has ended, so the command waits only briefly for the server.
        let began = Instant::now();
        std::thread::sleep(STATEMENTS_MAX);
        dbdyno_runner::cancel_statements(&spec, CANCEL_MAX);
        std::thread::sleep(ABANDONED_MAX.saturating_sub(began.elapsed()));
        std::process::exit(exit::code(EndReason::Abandoned).into());
    });
}
