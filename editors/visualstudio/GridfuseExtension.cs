namespace Gridfuse;

using Microsoft.VisualStudio.Extensibility;

/// <summary>What Visual Studio shows of the extension.</summary>
[VisualStudioContribution]
internal sealed class GridfuseExtension : Extension
{
    public override ExtensionConfiguration ExtensionConfiguration => new()
    {
        Metadata = new(
            id: "gridfuse.visualstudio",
            version: this.ExtensionAssemblyVersion,
            publisherName: "gridfuse",
            displayName: "gridfuse",
            description: "CUDA dynamic parallelism: launches from device code that will be slow or wrong, and their rewrites"),
    };
}
