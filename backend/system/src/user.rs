//! Users of this machine by name and number.

#[cfg(unix)]
use std::ffi::CString;

/// The uid of this process; 0 on systems without uids.
pub fn own_uid() -> u32 {
    #[cfg(unix)]
    // SAFETY: geteuid only returns a number and cannot fail.
    return unsafe { libc::geteuid() };
    #[cfg(not(unix))]
    0
}

/// The uid of a user name, from the system's user database; `None` when there is no such user.
///
/// # Errors
/// The system's own words if the database cannot be read.
#[cfg(unix)]
pub fn uid_of(name: &str) -> Result<Option<u32>, String> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    let mut buffer = vec![0u8; 4096];
    loop {
        // SAFETY: passwd is a plain C structure for which all zeroes is a valid value.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are valid for the call, the length is the buffer's, and the strings that `entry` points
        // to afterwards lie in `buffer` and are not read.
        let code = unsafe {
            libc::getpwnam_r(name.as_ptr(), &mut entry, buffer.as_mut_ptr().cast(), buffer.len(), &mut found)
        };
        match code {
            0 if found.is_null() => return Ok(None),
            0 => return Ok(Some(entry.pw_uid)),
            libc::ERANGE if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 4, 0),
            // Errors of the databases for "no such user", by the manual page.
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
            code => return Err(std::io::Error::from_raw_os_error(code).to_string()),
        }
    }
}

/// The number of a group: from its name in the system's database, or as given.
///
/// # Errors
/// There is no such group.
#[cfg(unix)]
pub fn gid_of(group: &str) -> Result<u32, String> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    let missing = || format!("there is no group {group} on this machine; `getent group` lists them");
    let name = CString::new(group).map_err(|_| missing())?;
    let mut buffer = vec![0u8; 1 << 16];
    // SAFETY: group is a plain C structure for which all zeroes is a valid value.
    let mut entry: libc::group = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, the length is the buffer's, and the strings that `entry` points to
    // afterwards lie in `buffer` and are not read.
    let code =
        unsafe { libc::getgrnam_r(name.as_ptr(), &mut entry, buffer.as_mut_ptr().cast(), buffer.len(), &mut found) };
    if code == 0 && !found.is_null() { Ok(entry.gr_gid) } else { Err(missing()) }
}

/// Windows has no uids: no name is found.
#[cfg(not(unix))]
pub fn uid_of(_name: &str) -> Result<Option<u32>, String> {
    Ok(None)
}

/// The login of a user number: the name, or the number if there is none.
#[cfg(unix)]
pub fn login_of(uid: u32) -> String {
    name_of(uid).unwrap_or_else(|| uid.to_string())
}

/// The name of this process's user; None if the database has none, or on systems without uids.
pub fn own_name() -> Option<String> {
    #[cfg(unix)]
    return name_of(own_uid());
    #[cfg(not(unix))]
    None
}

/// The name of a user number; None if the database has none, or cannot be read.
#[cfg(unix)]
pub fn name_of(uid: u32) -> Option<String> {
    let mut buffer = vec![0u8; 1 << 14];
    // SAFETY: passwd is a plain C structure for which all zeroes is a valid value.
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and the length is the buffer's.
    let code = unsafe { libc::getpwuid_r(uid, &mut entry, buffer.as_mut_ptr().cast(), buffer.len(), &mut found) };
    if code != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded, so the name is text in `buffer` that ends with a zero byte.
    let name = unsafe { std::ffi::CStr::from_ptr(entry.pw_name) };
    name.to_str().ok().map(str::to_string)
}
