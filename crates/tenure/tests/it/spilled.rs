//! Large payloads in the spill file: what cannot be read is an error, not the end of the process.

use std::fs::OpenOptions;

use tenure::{Code, Error, NewTask};

use crate::Folder;

#[test]
fn a_payload_that_cannot_be_read_is_an_error() {
    let folder = Folder::new();
    let tenure = folder.open();
    let id = tenure.submit(NewTask::new("q").payload(vec![7; 100 << 10])).wait().unwrap().task_id;
    let task = tenure.get(id).wait().unwrap();
    assert_eq!(task.payload.read().unwrap().len(), 100 << 10);
    let spill = folder.path().join("shelf");
    OpenOptions::new().write(true).open(spill).unwrap().set_len(0).unwrap();
    let error = Error::from(task.payload.read().unwrap_err());
    assert_eq!(error.code(), Code::Unavailable);
    assert!(error.message().contains("a payload cannot be read"), "{error}");
    let failed = tenure.snapshot().wait().unwrap_err();
    assert!(failed.message().contains("was not written"), "{failed}");
    tenure.submit(NewTask::new("q")).wait().unwrap();
    tenure.close().unwrap();
    let again = folder.open().get(id).wait().unwrap();
    assert_eq!(again.payload.read().unwrap().len(), 100 << 10, "the log has it");
}
