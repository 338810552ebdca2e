{
  description = "@SUMMARY@";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      sources = {
@EACH@
        @ARCH@-linux = {
          url = "@URL@";
          sha256 = "@SHA256@";
        };
@END@
      };
      package =
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        pkgs.stdenv.mkDerivation {
          pname = "watchglass";
          version = "@VERSION@";
          src = pkgs.fetchurl sources.${system};
          nativeBuildInputs = [
            pkgs.autoPatchelfHook
            pkgs.installShellFiles
          ];
          buildInputs = [ pkgs.stdenv.cc.cc.lib ];
          # The driver's library is opened at run time, from the folder where NixOS links it.
          appendRunpaths = [ "/run/opengl-driver/lib" ];
          installPhase = ''
            install -Dm755 watchglass $out/bin/watchglass
            installManPage man/*.1
            installShellCompletion --bash completions/watchglass --zsh completions/_watchglass --fish completions/watchglass.fish
          '';
          meta = {
            description = "@SUMMARY@";
            homepage = "@FORGE@";
            license = with pkgs.lib.licenses; [
              mit
              asl20
            ];
            mainProgram = "watchglass";
            platforms = builtins.attrNames sources;
          };
        };
    in
    {
      packages = builtins.mapAttrs (system: _: { default = package system; }) sources;
    };
}
