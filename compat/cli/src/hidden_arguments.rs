//! Hides passwords on the command line from other users, who can read it in /proc during the whole run, as MySQL's
//! clients do.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Overwrites the passwords in the arguments of this process. `std::env::args` then returns the overwritten arguments.
///
/// Does nothing if the kernel refuses, because a benchmark then still runs.
pub(crate) fn hide_passwords() {
    let Some(start) = address_of_arguments() else { return };
    let Ok(arguments) = std::fs::read("/proc/self/cmdline") else { return };
    let Ok(memory) = File::options().write(true).open("/proc/self/mem") else { return };
    let mut offset = 0;
    for argument in arguments.split(|&byte| byte == 0) {
        if let Some(at) = position_of_password(argument).filter(|&at| at < argument.len()) {
            let mut hidden = vec![0; argument.len() - at];
            hidden[0] = b'x';
            let _ = memory.write_all_at(&hidden, start + (offset + at) as u64);
        }
        offset += argument.len() + 1;
    }
}

/// The address of the first argument: `arg_start`, field 48 of proc(5)'s stat. The name in field 2 may contain spaces.
fn address_of_arguments() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(48 - 3)?.parse().ok().filter(|&address| address > 0)
}

/// Where the password begins in `--mysql-password=SECRET`, `--pgsql-password=SECRET` and the forms of MySQL's clients:
/// `--password=SECRET`, also abbreviated, and `-pSECRET`, also after letters without a value.
fn position_of_password(argument: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(argument);
    if !text.starts_with("--") {
        return dbdyno_slap::commandline::position_of_password(argument);
    }
    let equal_sign = argument.iter().position(|&byte| byte == b'=')?;
    let name = text.split('=').next()?.trim_start_matches('-').to_ascii_lowercase();
    (name.contains("pass") || name.starts_with("pa")).then_some(equal_sign + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_of_every_spelling_is_found() {
        let hidden =
            |argument: &str| position_of_password(argument.as_bytes()).map(|at| argument[..at].to_owned());
        for spelling in [
            "--mysql-password=",
            "--mysql_password=",
            "--pgsql-password=",
            "--password=",
            "--loose-password1=",
            "--pas=",
        ] {
            assert_eq!(hidden(&format!("{spelling}a=b")).as_deref(), Some(spelling));
        }
        assert_eq!(hidden("-psecret").as_deref(), Some("-p"));
        assert_eq!(hidden("-vvapsecret").as_deref(), Some("-vvap"));
        for other in ["--mysql-user=x", "--password", "-upassword", "-P3306", "password=x", "-", "--"] {
            assert_eq!(hidden(other), None, "{other}");
        }
    }
}
