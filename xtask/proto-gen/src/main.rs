//! Prints the Rust code of one schema: `proto-gen <include folder> <schema file>`.
//!
//! Protox stands in for `protoc`, so that nothing has to be installed by hand.

use std::error::Error;

use prost_build::Module;
use protox::Compiler;

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
    let wanted = named(files.last().ok_or("the schema is empty")?.package());
    let requests = files.into_iter().map(|file| (named(file.package()), file)).collect();
    let modules = prost_build::Config::new().generate(requests)?;
    print!("{}", modules.get(&wanted).ok_or("the schema has no messages")?);
    Ok(())
}
