namespace Gridfuse;

using System.Diagnostics;
using System.IO.Pipelines;
using Microsoft.VisualStudio.Extensibility;
using Microsoft.VisualStudio.Extensibility.Editor;
using Microsoft.VisualStudio.Extensibility.LanguageServer;
using Microsoft.VisualStudio.RpcContracts.LanguageServerProvider;
using Nerdbank.Streams;

/// <summary>Starts <c>gridfuse lsp</c>, which has to be on PATH, for CUDA files.</summary>
[VisualStudioContribution]
internal sealed class GridfuseServer : LanguageServerProvider
{
    [VisualStudioContribution]
    public static DocumentTypeConfiguration Cuda => new("gridfuse-cuda")
    {
        FileExtensions = [".cu", ".cuh"],
        BaseDocumentType = LanguageServerBaseDocumentType,
    };

    public override LanguageServerProviderConfiguration LanguageServerProviderConfiguration =>
        new("gridfuse", [DocumentFilter.FromDocumentType(Cuda)]);

    public override Task<IDuplexPipe?> CreateServerConnectionAsync(CancellationToken cancellationToken)
    {
        var command = new ProcessStartInfo("gridfuse", "lsp")
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            UseShellExecute = false,
            CreateNoWindow = true,
        };
        // It ends when Visual Studio closes its standard input.
        var server = Process.Start(command);
        return Task.FromResult<IDuplexPipe?>(server is null ? null : new DuplexPipe(
            PipeReader.Create(server.StandardOutput.BaseStream),
            PipeWriter.Create(server.StandardInput.BaseStream)));
    }

    public override Task OnServerInitializationResultAsync(
        ServerInitializationResult result, LanguageServerInitializationFailureInfo? failure, CancellationToken cancellationToken)
    {
        // A program that isn't there isn't looked for again in each file.
        if (result == ServerInitializationResult.Failed)
        {
            this.Enabled = false;
        }

        return base.OnServerInitializationResultAsync(result, failure, cancellationToken);
    }
}
