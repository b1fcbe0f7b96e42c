//! Prints the Rust code of one schema: `proto-gen <include folder> <schema file>`.
//!
//! Protox stands in for `protoc`, so that nothing has to be installed by hand. A schema with
//! services gets clients, servers, and its own description for those who ask a server for it.

use std::error::Error;
use std::fmt::Write;

use prost::Message;
use prost_build::Module;
use protox::Compiler;

/// Bytes that only go out share the memory that they lie in; those that come in are copied into
/// their place at once.
const SHARED_BYTES: [&str; 3] =
    [".tenure.v1.Lease.payload", ".tenure.v1.Task.payload", ".tenure.v1.Task.output"];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [include, schema] = &args[..] else {
        return Err("usage: proto-gen <include folder> <schema file>".into());
    };

    let mut compiler = Compiler::new([include])?;
    compiler.include_imports(true).include_source_info(true).open_file(schema)?;
    let files = compiler.file_descriptor_set().file;

    let named = |package: &str| Module::from_protobuf_package_name(package);
    // Imports come before the file that imports them.
    let last = files.last().ok_or("the schema is empty")?;
    let (wanted, has_services) = (named(last.package()), !last.service.is_empty());
    let requests = files.into_iter().map(|file| (named(file.package()), file)).collect();
    let mut config = prost_build::Config::new();
    if has_services {
        config.btree_map(["."]).bytes(SHARED_BYTES).enable_type_names();
        config.service_generator(tonic_prost_build::configure().service_generator());
    }
    let modules = config.generate(requests)?;
    print!("{}", modules.get(&wanted).ok_or("the schema has no messages")?);
    if has_services {
        compiler.include_source_info(false);
        print!("{}", description(&compiler.file_descriptor_set().encode_to_vec())?);
    }
    Ok(())
}

/// The compiled schema as a constant.
fn description(bytes: &[u8]) -> Result<String, std::fmt::Error> {
    let mut code = String::from("/// The compiled schema, for reflection.\n");
    code.push_str("pub const FILE_DESCRIPTOR_SET: &[u8] = b\"");
    for (at, byte) in bytes.iter().enumerate() {
        // A backslash at the end of a line joins it to the next.
        if at % 64 == 0 {
            code.push_str("\\\n    ");
        }
        match byte {
            b'"' | b'\\' => write!(code, "\\{}", char::from(*byte))?,
            b'!'..=b'~' => code.push(char::from(*byte)),
            // A space at the beginning of a line would be lost.
            _ => write!(code, "\\x{byte:02x}")?,
        }
    }
    code.push_str("\";\n");
    Ok(code)
}
