class Tidegate < Formula
  desc "@DESCRIPTION@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license "@LICENCE@"

  on_linux do
    on_intel do
      url "@REPOSITORY@/releases/download/v@VERSION@/@ARCHIVE@"
      sha256 "@SHA256@"
    end
  end

  def install
    bin.install "tidegate"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/tidegate.bash" => "tidegate"
    zsh_completion.install "completions/_tidegate"
    fish_completion.install "completions/tidegate.fish"
  end

  test do
    (testpath/"orders.csv").write "id\n1\n2\n"
    assert_match "2", shell_output("#{bin}/tidegate query 'SELECT count(*) FROM orders' #{testpath}")
  end
end
