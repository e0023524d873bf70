//! Reads the layers and lays them over each other.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::check::check;
use super::error::ConfigError;
use super::keys::{ENVIRONMENT, Kind};
use super::settings::Config;

/// Where layers come from.
pub struct Places<'a> {
    /// Root of the repository (its main checkout); `None` outside of one.
    pub root: Option<&'a Path>,
    /// Directory that relative paths in variables start from.
    pub directory: &'a Path,
    /// Looks a variable of the environment up.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// What was given on the command line; over every other layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// `--max-fix-loops`
    pub max_fix_loops: Option<u32>,
}

impl Places<'_> {
    /// Returns the files that may set something, the weaker first, each with the directory that relative paths in it
    /// start from: `$XDG_CONFIG_HOME/specialists/config.toml`, `<root>/.specialists/config.toml`.
    pub(super) fn files(&self) -> Vec<(PathBuf, PathBuf)> {
        let absolute = |name| (self.variable)(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
        let home = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
        let user = home.map(|home| home.join("specialists")).map(|base| (base.join("config.toml"), base));
        let repository = self.root.map(|root| (root.join(".specialists/config.toml"), root.to_owned()));
        user.into_iter().chain(repository).collect()
    }

    /// Reads every layer. `roles` are the specialists that may have a model of their own.
    ///
    /// # Errors
    /// The first fault, with file, line and key, or with the variable.
    pub fn load(&self, roles: &[&str], flags: Flags) -> Result<Config, ConfigError> {
        let (mut figment, mut files) = (Figment::new(), Vec::new());
        for (path, base) in self.files() {
            let Some(text) = read(&path)? else { continue };
            check(&path, &text, roles)?;
            figment = figment.merge(Layer::file(&path, &base, &text)?);
            files.push(path);
        }
        for layer in self.variables()? {
            figment = figment.merge(layer);
        }
        if let Some(loops) = flags.max_fix_loops {
            figment =
                figment.merge(Layer::one(Metadata::named("--max-fix-loops"), "chain", "max_fix_loops", loops.into()));
        }
        Config::extract(&figment, files)
    }

    /// Returns a layer for each variable that is set.
    fn variables(&self) -> Result<Vec<Layer>, ConfigError> {
        let mut layers = Vec::new();
        for (name, section, key, kind) in ENVIRONMENT {
            let Some(value) = (self.variable)(name).filter(|value| !value.is_empty()) else { continue };
            let text = value.to_string_lossy();
            // A program's path needn't be UTF-8 for the system, but it must be here: it goes through text.
            if !kind.admits(&text) || (value.to_str().is_none()) {
                return Err(ConfigError::BadVariable { name, found: format!("{value:?}"), wanted: kind.wanted() });
            }
            let value = match kind {
                Kind::Count => text.parse::<u32>().map_or_else(|_| text.as_ref().into(), Value::from),
                Kind::Program => Value::from(from_base(self.directory, &text)),
                Kind::Text | Kind::Mode => text.as_ref().into(),
            };
            layers.push(Layer::one(Metadata::named(name), section, key, value));
        }
        Ok(layers)
    }
}

/// Reads a configuration file; `None` when there is none.
fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
    match fs::metadata(path) {
        // Opening a pipe would wait for a writer for ever.
        Ok(facts) if !facts.is_file() => Err(unreadable(io::Error::other("not a regular file"))),
        Ok(_) => fs::read_to_string(path).map(Some).map_err(unreadable),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}

/// Returns a program with its path made absolute; a bare name is left to `PATH`.
fn from_base(base: &Path, program: &str) -> String {
    if program.contains('/') { base.join(program).to_string_lossy().into_owned() } else { program.to_owned() }
}

/// Values with their origin. figment's own TOML support would bring a second TOML parser.
struct Layer {
    metadata: Metadata,
    values: Dict,
}

impl Layer {
    /// Makes a layer of a file that was checked.
    fn file(path: &Path, base: &Path, text: &str) -> Result<Self, ConfigError> {
        let mut values: Dict = toml::from_str(text).map_err(|error| {
            ConfigError::Layers(Box::new(figment::Error::from(format!("{}: {error}", path.display()))))
        })?;
        if let Some(Value::Dict(_, tools)) = values.get_mut("tools") {
            for value in tools.values_mut() {
                if let Some(program) = value.as_str() {
                    *value = Value::from(from_base(base, program));
                }
            }
        }
        Ok(Self { metadata: Metadata::from("file", path), values })
    }

    fn one(metadata: Metadata, section: &str, key: &str, value: Value) -> Self {
        let section_values = Dict::from([(key.to_owned(), value)]);
        Self { metadata, values: Dict::from([(section.to_owned(), Value::from(section_values))]) }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        self.metadata.clone()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::policy::{FindingKind, Mode};

    /// A user directory, a repository and variables.
    struct World {
        place: tempfile::TempDir,
        variables: BTreeMap<String, OsString>,
    }

    impl World {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let xdg = place.path().join("xdg").into_os_string();
            Self { place, variables: BTreeMap::from([("XDG_CONFIG_HOME".to_owned(), xdg)]) }
        }

        fn root(&self) -> PathBuf {
            self.place.path().join("it's a r\u{e9}po\n")
        }

        fn user_file(self, text: &str) -> Self {
            self.file("xdg/specialists/config.toml", text)
        }

        fn repository_file(self, text: &str) -> Self {
            let file = self.root().join(".specialists/config.toml");
            self.file(file.to_str().unwrap(), text)
        }

        fn file(self, path: &str, text: &str) -> Self {
            let path = self.place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            self
        }

        fn variable(mut self, name: &str, value: &str) -> Self {
            self.variables.insert(name.to_owned(), value.into());
            self
        }

        fn load(&self, flags: Flags) -> Result<Config, ConfigError> {
            let root = self.root();
            let variable = |name: &str| self.variables.get(name).cloned();
            let places = Places { root: Some(&root), directory: Path::new("/cwd"), variable: &variable };
            places.load(&["executor", "reviewer"], flags)
        }
    }

    #[test]
    fn each_layer_covers_the_ones_before_key_by_key() {
        let world = World::new()
            .user_file(
                "[chain]\nmax_fix_loops = 1\nstall_seconds = 10\n[policy]\nmode = 'shadow'\nscope_collision = 'off'\n",
            )
            .repository_file("[chain]\nmax_fix_loops = 2\n[models]\nreviewer = 'acme/big'\n");
        let config = world.load(Flags::default()).unwrap();
        assert_eq!((config.chain.max_fix_loops, config.chain.stall_seconds), (Some(2), Some(10)));
        assert_eq!(config.policy.of(FindingKind::ContractMissing), Mode::Shadow);
        assert_eq!(config.policy.of(FindingKind::ScopeCollision), Mode::Off);
        assert_eq!(config.models.of("reviewer", None), Some("acme/big"));
        assert_eq!(config.files().len(), 2);

        let world = world.variable("SP_MAX_FIX_LOOPS", "3").variable("SP_POLICY_MODE", "enforce");
        let config = world.load(Flags::default()).unwrap();
        assert_eq!(config.chain.max_fix_loops, Some(3));
        assert_eq!(config.policy.of(FindingKind::ContractMissing), Mode::Enforce);
        assert_eq!(config.origin("chain.max_fix_loops").as_deref(), Some("SP_MAX_FIX_LOOPS"));

        let config = world.load(Flags { max_fix_loops: Some(4) }).unwrap();
        assert_eq!(config.chain.max_fix_loops, Some(4));
        assert_eq!(config.chain.stall_seconds, Some(10));
    }

    #[test]
    fn without_any_layer_nothing_is_set() {
        let config = World::new().variable("SP_BD", "").load(Flags::default()).unwrap();
        assert_eq!((config.tools.bd.as_deref(), config.tools.pi.as_deref()), (None, None));
        assert_eq!(config.policy.of(FindingKind::ContractMissing), Mode::Warn);
        assert_eq!((config.chain.max_fix_loops, config.models.of("executor", None)), (None, None));
        assert!(config.files().is_empty());
    }

    #[test]
    fn a_relative_program_starts_from_what_its_layer_is_about_and_a_name_stays_a_name() {
        let world = World::new().user_file("[tools]\nbd = './bd'\n").repository_file("[tools]\npi = 'tools/pi'\n");
        let config = world.load(Flags::default()).unwrap();
        assert_eq!(config.tools.bd, Some(world.place.path().join("xdg/specialists/./bd")));
        assert_eq!(config.tools.pi, Some(world.root().join("tools/pi")));
        let origin = config.origin("tools.pi").unwrap();
        assert_eq!(origin, world.root().join(".specialists/config.toml").display().to_string());

        let world = world.variable("SP_BD", "bin/bd").variable("SP_PI", "pi-next");
        let config = world.load(Flags::default()).unwrap();
        assert_eq!(config.tools.bd.as_deref(), Some(Path::new("/cwd/bin/bd")));
        assert_eq!(config.tools.pi.as_deref(), Some(Path::new("pi-next")));
        assert_eq!(config.origin("tools.bd").as_deref(), Some("SP_BD"));
    }

    #[test]
    fn a_fault_in_any_layer_names_the_layer() {
        let told = |world: World| world.load(Flags::default()).unwrap_err().to_string();
        assert!(told(World::new().user_file("[tools]\nx = 1\n")).contains("xdg/specialists/config.toml, line 2"));
        assert!(told(World::new().repository_file("[")).contains(".specialists/config.toml, line 1"));
        assert_eq!(
            told(World::new().variable("SP_MAX_FIX_LOOPS", "many")),
            "read the variable SP_MAX_FIX_LOOPS: it is \"many\", wanted is a whole number from 0 to 4294967295"
        );
        let world = World::new();
        fs::create_dir_all(world.root().join(".specialists/config.toml")).unwrap();
        assert!(matches!(world.load(Flags::default()), Err(ConfigError::Unreadable { .. })));
    }

    #[test]
    fn the_user_directory_is_found_below_home_when_xdg_names_none() {
        let variable = |name: &str| match name {
            "HOME" => Some(OsString::from("/home/ann")),
            "XDG_CONFIG_HOME" => Some(OsString::from("relative")),
            _ => None,
        };
        let places = Places { root: None, directory: Path::new("/"), variable: &variable };
        let files: Vec<PathBuf> = places.files().into_iter().map(|(path, _)| path).collect();
        assert_eq!(files, [Path::new("/home/ann/.config/specialists/config.toml")]);
    }
}
