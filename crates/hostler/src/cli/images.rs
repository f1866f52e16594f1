//! How an agent runs images of containers, for the two commands that run one.

use clap::Args;
use hostler_live::agent::image::ImageSettings;
use hostler_live::image::Program;

/// How images of containers are run.
#[derive(Clone, Debug, Default, Args)]
pub struct ImageOptions {
    /// Programs that may run images of jobs, the first that is here and can: of `apptainer`,
    /// `singularity`, `podman` and `enroot`, in this order by default; `none` runs no images.
    #[arg(long, value_name = "NAMES", value_parser = programs)]
    pub image_programs: Option<Programs>,
    /// A word for that program, before the image; may be given several times. Variables such as
    /// STORAGE_DRIVER, CONTAINERS_CONF, APPTAINER_.. and ENROOT_.. of the agent are its, too.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub image_arg: Vec<String>,
}

/// Programs by name.
#[derive(Clone, Debug)]
pub struct Programs(Vec<Program>);

fn programs(text: &str) -> Result<Programs, String> {
    if text == "none" {
        return Ok(Programs(Vec::new()));
    }
    let names = text.split(',').map(|name| {
        Program::named(name).ok_or_else(|| {
            let known: Vec<&str> = Program::ALL.into_iter().map(Program::name).collect();
            format!("`{name}` runs no images; use {} or none", known.join(", "))
        })
    });
    names.collect::<Result<_, _>>().map(Programs)
}

impl ImageOptions {
    /// What they say.
    pub fn settings(&self) -> ImageSettings {
        let usual = ImageSettings::default();
        ImageSettings {
            programs: self.image_programs.as_ref().map_or(usual.programs, |it| it.0.clone()),
            args: self.image_arg.clone(),
        }
    }
}
