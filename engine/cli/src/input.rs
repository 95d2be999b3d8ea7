//! Standard input and secrets: the plan, the commands after it, and the password it names.

use std::io::BufRead;

use dbdyno_door::Plan;
use dbdyno_door::plan::{Command, Secret, Target};
use dbdyno_door::record::EndReason;
use dbdyno_drive::{Control, Secrets};

/// Reads the plan from the first line of standard input; all its faults come in one message.
pub(crate) fn read_plan() -> Result<Plan, String> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| format!("standard input: {error}"))?;
    if line.trim().is_empty() {
        return Err(
            "no plan on standard input; the first line must be one, see `dbdyno-engine schema plan`".into()
        );
    }
    let plan: Plan =
        serde_json::from_str(&line).map_err(|error| format!("the plan is not usable: {error}"))?;
    let faults = plan.faults();
    if !faults.is_empty() {
        return Err(format!("the plan is not usable:\n  {}", faults.join("\n  ")));
    }
    Ok(plan)
}

/// Everything the target needs that the plan only names.
pub(crate) fn secrets(plan: &Plan) -> Result<Secrets, String> {
    Ok(Secrets { password: password(plan)? })
}

/// The target's password, from where the plan says; empty where it names none.
fn password(plan: &Plan) -> Result<String, String> {
    let Target::Mysql { password, .. } = &plan.target else {
        return Ok(String::new());
    };
    match password {
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

/// Follows the commands after the plan on a thread of its own. The end of standard input stops the run.
pub(crate) fn follow_commands(control: Control) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(Command::Start { at_unix_us }) => control.start(at_unix_us),
                Err(error) => eprintln!("dbdyno-engine: a line on standard input is no command: {error}"),
            }
        }
        control.stop(EndReason::Abandoned);
    });
}
