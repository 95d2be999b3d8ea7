//! Helpers of the unit tests.

use super::Compat;
use super::registry::Registry;
use super::settings::Settings;

pub(crate) fn registry(options: &[(&str, &str)], compat: Compat) -> Registry {
    let mut registry = Registry::new(compat);
    options.iter().for_each(|(name, value)| registry.set(name, Some(value)).unwrap());
    registry
}

pub(crate) fn settings(options: &[(&str, &str)], compat: Compat) -> Settings {
    Settings::read(&registry(options, compat), compat).unwrap()
}
