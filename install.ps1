# Installs mailclaim and its own Node for the current user, or removes them:
#
#   irm https://github.com/OWNER/mailclaim/releases/latest/download/install.ps1 | iex
#   & ([scriptblock]::Create((irm https://github.com/OWNER/mailclaim/releases/latest/download/install.ps1))) -Uninstall
#
# All files are in PREFIX\lib\mailclaim, and PREFIX\bin\mailclaim.cmd starts it. Environment variables, also those that your CI sets:
#
#   PREFIX        directory to install in (%LOCALAPPDATA%\Programs\mailclaim)
#   VERSION       version to install (the newest)
#   INSTALL_FROM  URL or directory with the archives of a release and its SHA256SUMS
param([switch]$Uninstall)

& {
  Set-StrictMode -Version Latest
  $ErrorActionPreference = 'Stop'
  # The progress bar of Windows PowerShell makes a download ten times slower.
  $ProgressPreference = 'SilentlyContinue'
  [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12

  $prefix = if ($env:PREFIX) { $env:PREFIX } else { "$env:LOCALAPPDATA\Programs\mailclaim" }
  $prefix = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($prefix)
  $library = "$prefix\lib\mailclaim"
  $launcher = "$prefix\bin\mailclaim.cmd"
  $id = [IO.Path]::GetRandomFileName()
  # The new version is prepared in $work and unpacked in $new.
  $work = "$library\.new.$id"
  $new = "$library\$id"
  $state = @{ installed = $false; failed = $false }

  # Downloads or copies a file of the release to $work.
  function Get-File($name) {
    try {
      if ($from -match '^https?://') { Invoke-WebRequest -UseBasicParsing -Uri "$from/$name" -OutFile "$work\$name" }
      else { Copy-Item -LiteralPath "$from\$name" -Destination "$work\$name" }
    } catch { throw "${asked}can't get $from/${name}: $($_.Exception.Message)" }
  }

  # Returns a program's stdout; $LASTEXITCODE is its exit code.
  function Invoke-Program($program) {
    $ErrorActionPreference = 'Continue'
    & $program @args 2>$null
  }

  function Install-Program {
    $processor = if ($env:PROCESSOR_ARCHITEW6432) { $env:PROCESSOR_ARCHITEW6432 } else { $env:PROCESSOR_ARCHITECTURE }
    # Windows on ARM64 runs programs for x64.
    if ($processor -notin 'AMD64', 'ARM64') {
      throw "no archive for Windows on ${processor}: with Node 20.19, 22.3 or later, npm install --global mailclaim"
    }
    $version = "$env:VERSION" -replace '^v', ''
    $asked = if ($version) { "VERSION=`"$version`": " }
    $from = if ($env:INSTALL_FROM) { $env:INSTALL_FROM }
      elseif ($version) { "https://github.com/OWNER/mailclaim/releases/download/v$version" }
      else { 'https://github.com/OWNER/mailclaim/releases/latest/download' }
    # Only directories that exist now are removed later: another installer may be running and create others.
    $before = @(Get-ChildItem -Directory -Name $library -ErrorAction SilentlyContinue)
    try { New-Item -ItemType Directory -Force $work, "$prefix\bin" | Out-Null }
    catch { throw "can't write to ${prefix}: choose another directory with PREFIX" }

    Get-File 'SHA256SUMS'
    $isList = Select-String -Quiet -LiteralPath "$work\SHA256SUMS" -Pattern '^[0-9a-f]{64} [ *]'
    if (-not $isList) { throw "$from/SHA256SUMS isn't a list of checksums: does this network want you to sign in?" }
    $wanted = if ($version) { [regex]::Escape($version) } else { '\d[\w.+-]*' }
    $line = Get-Content "$work\SHA256SUMS" |
      Where-Object { $_ -match "^[0-9a-f]{64} [ *]mailclaim-$wanted-win32-x64\.zip$" } | Select-Object -Last 1
    if (-not $line) { throw "$asked$from has no archive for win32-x64" }
    $checksum, $archive = $line -split ' [ *]'
    Get-File $archive
    if ((Get-FileHash -LiteralPath "$work\$archive" -Algorithm SHA256).Hash -ne $checksum) {
      throw "the checksum of $archive is wrong: it is damaged, or not what was released"
    }
    New-Item -ItemType Directory $new | Out-Null
    Invoke-Program "$env:SystemRoot\System32\tar.exe" -xf "$work\$archive" -C $new --strip-components 1
    if ($LASTEXITCODE -ne 0) { throw "can't unpack $archive" }
    $version = Invoke-Program "$new\mailclaim.cmd" --version
    if ($LASTEXITCODE -ne 0) { throw "mailclaim doesn't start on this machine" }

    # Running processes keep using the earlier version, which the next installation removes. Replace is atomic.
    $earlier = if (Test-Path $launcher) { Get-Content -Raw $launcher } else { '' }
    Set-Content -Encoding Ascii "$work\mailclaim.cmd" "@`"%~dp0..\lib\mailclaim\$id\mailclaim.cmd`" %*"
    if ($earlier) { [IO.File]::Replace("$work\mailclaim.cmd", $launcher, [NullString]::Value) }
    else { Move-Item "$work\mailclaim.cmd" $launcher }
    $state.installed = $true
    Get-ChildItem -Directory $library |
      Where-Object { $_.Name -in $before -and $_.Name -notlike '.new.*' -and -not $earlier.Contains("\$($_.Name)\") } |
      Remove-Item -Recurse -Force -ErrorAction SilentlyContinue
    "mailclaim $version is installed: $launcher"
    $found = Get-Command mailclaim -ErrorAction SilentlyContinue
    if (-not $found -or $found.Source -ne $launcher) {
      'New shells find it after this line:'
      "[Environment]::SetEnvironmentVariable('Path', '$($prefix.Replace("'", "''"))\bin;' + [Environment]::GetEnvironmentVariable('Path', 'User'), 'User')"
    }
  }

  function Uninstall-Program {
    if (-not (Test-Path $library)) { throw "mailclaim isn't installed in ${prefix}: set PREFIX to where it is" }
    $ErrorActionPreference = 'Continue'
    $places = try { & $launcher config list 2>&1 | Where-Object { $_ -is [Management.Automation.ErrorRecord] } } catch { }
    $ErrorActionPreference = 'Stop'
    # The move fails while a program in the directory is running, before any file is deleted.
    try { [IO.Directory]::Move($library, "$library.$id") }
    catch { throw "can't remove ${library}: end each mailclaim that is running" }
    if (Test-Path $launcher) { Remove-Item -Force $launcher }
    Remove-Item -Recurse -Force "$library.$id"
    "mailclaim is removed from $prefix. What ``mailclaim logout --all`` would have removed is still there:"
    "the tokens and API keys of all profiles, in Windows' Credential Manager (named mailclaim) or in files. $places"
    "Compiled code is in $env:LOCALAPPDATA\mailclaim\compiled, and may be deleted."
  }

  try {
    if ((Test-Path $launcher) -and (Get-Content -Raw $launcher) -notmatch '\\lib\\mailclaim\\') {
      throw "$launcher isn't from this installer: remove it, or choose another PREFIX"
    }
    if ($Uninstall) { Uninstall-Program } else { Install-Program }
  } catch {
    [Console]::Error.WriteLine("error: $($_.Exception.Message)")
    $state.failed = $true
  } finally {
    foreach ($directory in $work, $(if (-not $state.installed) { $new })) {
      if ($directory -and (Test-Path $directory)) { Remove-Item -Recurse -Force $directory -ErrorAction SilentlyContinue }
    }
    foreach ($directory in $library, "$prefix\lib", "$prefix\bin", $prefix) {
      if ((Test-Path $directory) -and -not (Get-ChildItem -Force $directory)) { Remove-Item $directory }
    }
  }
  # `exit` would close the user's shell if the script's text was run with iex; there only the exit code is set.
  if ($state.failed -and $PSCommandPath) { exit 1 }
  if ($state.failed) { $global:LASTEXITCODE = 1 }
}
