{
  description = "Language server and command line for CUDA dynamic parallelism";

  # Rust has to be as new as `rust-version` in Cargo.toml says.
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      manifest = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package;
      # Those that a release is made for. Nix doesn't run on Windows.
      systems = [
        "x86_64-linux"
        "aarch64-linux"
        "aarch64-darwin"
      ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});

      build =
        pkgs:
        pkgs.rustPlatform.buildRustPackage {
          pname = "gridfuse";
          inherit (manifest) version;
          src = self;
          cargoLock.lockFile = ./Cargo.lock;
          cargoBuildFlags = [
            "--package"
            "gridfuse"
          ];
          # They fetch a compiler and editors.
          doCheck = false;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          postInstall = pkgs.lib.optionalString (pkgs.stdenv.buildPlatform.canExecute pkgs.stdenv.hostPlatform) ''
            $out/bin/gridfuse man --output manual
            installManPage manual/*
            installShellCompletion --cmd gridfuse \
              --bash <($out/bin/gridfuse completions bash) \
              --fish <($out/bin/gridfuse completions fish) \
              --zsh <($out/bin/gridfuse completions zsh)
          '';
          meta = {
            inherit (manifest) description;
            license = [
              pkgs.lib.licenses.mit
              pkgs.lib.licenses.asl20
            ];
            mainProgram = "gridfuse";
            platforms = systems;
          };
        };
    in
    {
      packages = forEach (pkgs: rec {
        default = build pkgs;
        gridfuse = default;
      });

      overlays.default = final: _previous: { gridfuse = build final; };

      devShells = forEach (pkgs: {
        default = pkgs.mkShell {
          packages = [
            pkgs.cargo
            pkgs.clippy
            pkgs.git
            pkgs.nodejs
            pkgs.python3
            pkgs.rustc
            pkgs.rustfmt
          ];
        };
      });
    };
}
