# Completion of pcctl's commands and flags for PowerShell:
#   pcctl completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName pcctl, pcctl.exe -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object {
            if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text }
        })
    if ($words.Count -eq 0) { return }
    $request = @($words | Select-Object -Skip 1)
    if ($wordToComplete -like '-*') { $request += $wordToComplete }
    & $words[0] @request --generate-shell-completion 2>$null | ForEach-Object {
        $suggestion, $description = $_ -split "`t", 2
        if ($suggestion -like "$wordToComplete*") {
            if (-not $description) { $description = $suggestion }
            [System.Management.Automation.CompletionResult]::new($suggestion, $suggestion, 'ParameterValue', $description)
        }
    }
}
