//! Shapes of values in the OpenAPI document that a field's type does not tell.
//!
//! What is checked stands where it is checked; this only says it to those who read the document.

use utoipa::openapi::schema::{AdditionalProperties, AnyOfBuilder, ArrayBuilder, ObjectBuilder};
use utoipa::openapi::{Schema, Type};

use crate::limits::{AFTER_MAX, COMMAND_BYTES_MAX, MOUNTS_MAX, SELECTIONS_MAX};

/// Text that can be handed to a program.
const WORD: &str = r"^[^\u0000]*$";

/// Name of a variable.
const VARIABLE: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// Jobs that are waited for.
const NEED: &str = "^((finished|over|failed|started):)?[0-9]{1,10}(_[0-9]{1,10})?(-[0-9]{1,10})?$";

/// Program and arguments.
pub fn command() -> Schema {
    let program = word().min_length(Some(1)).build();
    let list = ArrayBuilder::new()
        .description(Some("Program and arguments; no shell is involved unless it is named."))
        .prefix_items([Schema::from(program)])
        .items(word().build())
        .min_items(Some(1));
    list.build().into()
}

/// Variables by name.
pub fn variables() -> Schema {
    let name = ObjectBuilder::new().schema_type(Type::String).pattern(Some(VARIABLE)).build();
    let value = AdditionalProperties::RefOr(Schema::from(word().build()).into());
    let map = ObjectBuilder::new()
        .schema_type(Type::Object)
        .description(Some("Environment on top of the agent's small one."))
        .property_names(Some(name))
        .additional_properties(Some(value));
    map.build().into()
}

/// Folder to run in.
pub fn folder() -> Schema {
    let words = "Folder to run in, from `/` on; one of the job's own when empty.";
    word().pattern(Some(r"^(/[^\u0000]*)?$")).description(Some(words)).build().into()
}

/// Image of a container.
pub fn image() -> Schema {
    let words = "Image of a container to run it in: `docker://NAME`, an archive behind \
                 `oci-archive:` or `docker-archive:`, or a file or folder that its node has, from \
                 `/` on; in none when empty.";
    let pattern = r"^(docker://[A-Za-z0-9][A-Za-z0-9._:/@+-]*|((oci|docker)-archive:)?/[^:,\u0000-\u001f\u007f-\u009f]*)?$";
    word().pattern(Some(pattern)).description(Some(words)).build().into()
}

/// What is seen inside of a container.
pub fn mounts() -> Schema {
    let path = r"/[^:,\u0000-\u001f\u007f-\u009f]*";
    let one = word().pattern(Some(format!("^{path}(:{path})?(:(ro|rw))?$")));
    let list = ArrayBuilder::new()
        .description(Some(
            "What is seen inside of the container besides the job's own folders; only with an \
             image.",
        ))
        .items(one.examples(["/data", "/data:ro", "/home/me/data:/data:ro"]).build())
        .max_items(Some(MOUNTS_MAX));
    list.build().into()
}

/// GPUs of one task.
pub fn gpus() -> Schema {
    let part = number().minimum(Some(0.01)).maximum(Some(1.0)).build();
    let whole = number().minimum(Some(0)).maximum(Some(64_000)).multiple_of(Some(1)).build();
    AnyOfBuilder::new()
        .description(Some("GPUs of each task: 0, a fraction below 1, or whole ones."))
        .item(part)
        .item(whole)
        .build()
        .into()
}

/// CPU cores of one task.
pub fn cpus() -> Schema {
    let some = number().minimum(Some(0.001)).maximum(Some(64_000)).build();
    let none = number().minimum(Some(0)).maximum(Some(0)).build();
    let words = "CPU cores of each task; without a GPU a tenth at least, else 422.";
    AnyOfBuilder::new().description(Some(words)).item(some).item(none).build().into()
}

/// Jobs to wait for.
pub fn after() -> Schema {
    let job = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    let words = ObjectBuilder::new().schema_type(Type::String).pattern(Some(NEED)).examples([
        "17",
        "over:12",
        "failed:12_3",
        "started:12_3-7",
    ]);
    let one = AnyOfBuilder::new().item(job.maximum(Some(u32::MAX)).build()).item(words.build());
    let list = ArrayBuilder::new()
        .description(Some(
            "Jobs that must have finished well before it may start; behind `over:`, `failed:` or \
             `started:` those that must have ended anyhow, ended badly, or begun. The number of an \
             array means all of it.",
        ))
        .items(utoipa::openapi::RefOr::from(Schema::from(one.build())))
        .max_items(Some(AFTER_MAX));
    list.build().into()
}

/// Jobs by number, range or index.
pub fn selections() -> Schema {
    let one = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[0-9]{1,10}(_[0-9]{1,10})?(-[0-9]{1,10})?$"))
        .examples(["17", "12-40", "12_3", "12_3-7"]);
    let list = ArrayBuilder::new()
        .description(Some(
            "`17`, which is all of an array if one begins with it, a range as in `12-40`, or \
             indices of an array as in `12_3` and `12_3-7`.",
        ))
        .items(one.build())
        .min_items(Some(1))
        .max_items(Some(SELECTIONS_MAX));
    list.build().into()
}

fn number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number)
}

fn word() -> ObjectBuilder {
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(WORD));
    text.max_length(Some(COMMAND_BYTES_MAX))
}
