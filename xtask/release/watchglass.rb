class Watchglass < Formula
  desc "@SUMMARY@"
  homepage "@FORGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  depends_on :linux

@EACH@
  @HOMEBREW@ do
    url "@URL@"
    sha256 "@SHA256@"
  end

@END@
  def install
    bin.install "watchglass"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/watchglass"
    zsh_completion.install "completions/_watchglass"
    fish_completion.install "completions/watchglass.fish"
    doc.install "README.md", "THIRD-PARTY.md"
  end

  service do
    run [opt_bin/"watchglass", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/watchglass --version")
  end
end
